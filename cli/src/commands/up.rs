//! `up`: all roles in this process, for all tasks, until it is told to stop.

use checkrein_shared::api::routes::Serving;

use super::Signals;
use crate::client;
use crate::context::Context;
use crate::embedded::Embedded;
use crate::exit::Exit;
use crate::failure::Failure;

/// Serves until a signal comes.
pub(crate) async fn up(context: &Context) -> Result<Exit, Failure> {
    if let Some((_, health)) = client::connect(context).await? {
        return Err(Failure::unable(format!("another instance is running: process {}", health.pid))
            .at(context.data.display())
            .hint("use it: every command finds it by itself; or stop it first, or use another --data DIR"));
    }
    let signals = Signals::listen("stopping")?;
    let mut embedded = Embedded::open(context).await?;
    let served = serve(context, &mut embedded, &signals).await;
    embedded.close_after(served).await
}

async fn serve(context: &Context, embedded: &mut Embedded, signals: &Signals) -> Result<Exit, Failure> {
    embedded.start(Serving::All).await?;
    let out = &context.out;
    out.object(&serde_json::json!({ "data": context.data, "pid": std::process::id() }))?;
    out.line(format!("serving {} as process {}; Ctrl-C stops", context.data.display(), std::process::id()));
    out.note(format!("  checkrein submit TASK.yaml{0}\n  checkrein watch{0}", context.data_option()));
    tokio::select! {
        () = signals.first() => Ok(Exit::Completed),
        failure = embedded.failed() => Err(failure),
    }
}
