//! `submit`: hands a task over and returns at once.

use serde_json::json;

use crate::args::SubmitArgs;
use crate::client::Session;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::submission;

/// Submits a task.
pub(crate) async fn submit(context: &Context, args: &SubmitArgs) -> Result<Exit, Failure> {
    let prepared = submission::prepare(context, &args.what, &args.task)?;
    let out = &context.out;
    prepared.warnings.iter().for_each(|warning| out.warn(warning));
    let session = Session::open(context).await?;
    let id = session.api().submit(prepared.submission).await?;
    out.object(&json!({ "id": id }))?;
    out.line(id.as_str());
    if session.is_served(&id) {
        out.note(format!("watch it: checkrein watch {id}{}", context.data_option()));
    } else {
        out.note(format!("nothing is running; start it: checkrein up{}", context.data_option()));
    }
    session.close().await?;
    Ok(Exit::Completed)
}
