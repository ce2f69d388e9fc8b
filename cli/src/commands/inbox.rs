//! `inbox`: what waits for a person.

use checkrein_shared::time::Timestamp;

use crate::client::Session;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::inbox_lines;

/// Lists what waits.
pub(crate) async fn inbox(context: &Context) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let items = session.api().inbox().await?;
    let out = &context.out;
    out.object(&items)?;
    if items.is_empty() {
        out.note("nothing waits for a person");
    }
    inbox_lines(out, &items, Timestamp::now()).iter().for_each(|line| out.line(line));
    session.close().await?;
    Ok(Exit::Completed)
}
