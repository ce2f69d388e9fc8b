//! `approve`, `reject`, `request-changes` and the other decisions of people.

use checkrein_shared::api::{Action, TaskView};
use checkrein_shared::digest::Digest;

use super::next;
use crate::args::{ApproveArgs, CloseFindingArgs, RejectArgs, RequestChangesArgs};
use crate::client::{Session, find_task};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::shown;

/// Does something to a task and says what came of it.
pub(crate) async fn act(context: &Context, task: &str, action: Action) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let id = find_task(session.api(), task).await?.id;
    finish(context, session, &id, action).await
}

/// Carries out an action over an open session.
pub(super) async fn finish(
    context: &Context,
    session: Session,
    id: &checkrein_shared::ids::TaskId,
    action: Action,
) -> Result<Exit, Failure> {
    let acted = session.api().act(id, action, &context.by).await?;
    let out = &context.out;
    out.object(&acted)?;
    out.line(format!("{} ({id} is {})", shown(&acted.text), acted.state.as_str()));
    let served = session.is_served(id);
    if !served && !acted.state.is_terminal() {
        let task = session.api().task(id).await?;
        next::say(context, &task, served);
    }
    session.close().await?;
    Ok(Exit::Completed)
}

/// Answers the question that a task asks.
async fn answer(
    context: &Context,
    task: &str,
    hash: Option<&str>,
    action: impl FnOnce(Digest) -> Action,
) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let id = find_task(session.api(), task).await?.id;
    let view = session.api().task(&id).await?;
    let hash = hash_to_answer(&view, hash)?;
    context.out.note(format!("about checkpoint hash {hash}"));
    finish(context, session, &id, action(hash)).await
}

/// How many digits of a hash the pages show, and so the fewest that name one.
const HASH_DIGITS_MIN: usize = 12;

/// The checkpoint hash that the answer is for: the one that was given, or the one that is asked about now.
fn hash_to_answer(task: &TaskView, given: Option<&str>) -> Result<Digest, Failure> {
    let Some(text) = given else { return asked_about(task) };
    let invalid = match text.parse::<Digest>() {
        // Whether it is still the one that is asked about, the orchestrator says, and its answer is on record.
        Ok(whole) => return Ok(whole),
        Err(invalid) => invalid,
    };
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) || digits.len() >= 64 {
        return Err(Failure::usage(invalid.to_string()).hint("`checkrein inbox` shows the hash that is asked about"));
    }
    if digits.len() < HASH_DIGITS_MIN {
        let what = format!("`{text}` is too short to name a hash: {HASH_DIGITS_MIN} digits are needed");
        return Err(Failure::usage(what).hint("`checkrein inbox` shows as many"));
    }
    let asked = asked_about(task)?;
    if asked.to_string().trim_start_matches("sha256:").starts_with(&digits) {
        return Ok(asked);
    }
    let what = format!("task {} asks about {asked}, not about `{text}`", task.summary.id);
    Err(Failure::usage(what).hint("something changed since you looked: `checkrein inbox` shows what is asked now"))
}

/// What is asked about now.
fn asked_about(task: &TaskView) -> Result<Digest, Failure> {
    let id = &task.summary.id;
    let Some(item) = &task.item else {
        return Err(Failure::usage(format!("task {id} asks nothing: it is {}", task.summary.state.as_str()))
            .hint("`checkrein inbox` lists what waits for a person"));
    };
    let none =
        || Failure::usage(format!("the question of task {id} names no checkpoint")).hint("`checkrein show` says more");
    item.checkpoint_hash.ok_or_else(none)
}

/// Approves.
pub(crate) async fn approve(context: &Context, args: ApproveArgs) -> Result<Exit, Failure> {
    let note = args.note;
    answer(context, &args.task, args.hash.as_deref(), |hash| Action::Approve { checkpoint_hash: hash, note }).await
}

/// Rejects.
pub(crate) async fn reject(context: &Context, args: RejectArgs) -> Result<Exit, Failure> {
    let reason = args.reason;
    answer(context, &args.task, args.hash.as_deref(), |hash| Action::Reject { checkpoint_hash: hash, reason }).await
}

/// Sends back.
pub(crate) async fn request_changes(context: &Context, args: RequestChangesArgs) -> Result<Exit, Failure> {
    let text = args.text;
    answer(context, &args.task, args.hash.as_deref(), |hash| Action::RequestChanges { checkpoint_hash: hash, text })
        .await
}

/// Closes a finding.
pub(crate) async fn close_finding(context: &Context, args: CloseFindingArgs) -> Result<Exit, Failure> {
    act(context, &args.task, Action::CloseFinding { finding: args.finding, reason: args.reason }).await
}
