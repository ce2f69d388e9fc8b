//! `tasks`, `show` and `watch`.

use checkrein_shared::api::{Api, TaskState};
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::Checkpoint;
use checkrein_shared::time::Timestamp;
use serde_json::json;

use super::{Follow, Rest, Signals};
use crate::args::{ShowArgs, WatchArgs};
use crate::client::{Session, find_task, load_checkpoint};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{epitaph_lines, left_behind_lines, task_lines, tasks_lines, why_lines};

/// Lists the tasks.
pub(crate) async fn tasks(context: &Context) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let tasks = session.api().tasks().await?;
    let out = &context.out;
    out.object(&tasks)?;
    if tasks.is_empty() {
        out.note("no task yet: `checkrein demo` shows one, `checkrein init` writes one");
    }
    tasks_lines(out, &tasks, Timestamp::now()).iter().for_each(|line| out.line(line));
    session.close().await?;
    Ok(Exit::Completed)
}

/// Shows one task.
pub(crate) async fn show(context: &Context, args: &ShowArgs) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let summary = find_task(session.api(), &args.task).await?;
    let id = summary.id;
    if summary.pruned_at.is_some() {
        let epitaph = session.api().epitaph(&id).await?;
        context.out.object(&epitaph)?;
        epitaph_lines(&context.out, &epitaph, Timestamp::now()).iter().for_each(|line| context.out.line(line));
        session.close().await?;
        return Ok(Exit::Completed);
    }
    let task = session.api().task(&id).await?;
    let chain = if args.why { chain(session.api(), &id).await? } else { Vec::new() };
    let out = &context.out;
    if args.why {
        out.object(&json!({ "task": task, "checkpoints": chain }))?;
    } else {
        out.object(&task)?;
    }
    task_lines(out, &task, Timestamp::now()).iter().for_each(|line| out.line(line));
    if matches!(task.summary.state, TaskState::Failed | TaskState::Cancelled) {
        let entries = super::effects::all(session.api(), Some(&id)).await?;
        left_behind_lines(out, &entries).iter().for_each(|line| out.line(line));
    }
    if args.why {
        why_lines(out, &task, &chain).iter().for_each(|line| out.line(line));
    }
    session.close().await?;
    Ok(Exit::Completed)
}

/// Every checkpoint of a task, oldest first.
pub(crate) async fn chain(api: &dyn Api, id: &TaskId) -> Result<Vec<Checkpoint>, Failure> {
    let mut chain = Vec::new();
    for reference in api.checkpoints(id).await? {
        chain.push(load_checkpoint(api, &reference).await?);
    }
    Ok(chain)
}

/// Follows a task until it rests.
pub(crate) async fn watch(context: &Context, args: &WatchArgs) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let summary = find_task(session.api(), &args.task).await?;
    let out = &context.out;
    if !session.is_served(&summary.id) {
        // Nothing can happen while this command has the folder open: tell what there is, and let go.
        let events = if args.from_start { session.api().events(&summary.id, 0, 0).await? } else { Vec::new() };
        for event in &events {
            out.object(&json!({ "event": event }))?;
            crate::output::event_lines(out, event).iter().for_each(|line| out.line(line));
        }
        out.line(format!("{}: {}", summary.state.as_str(), crate::output::shown(&summary.detail)));
        if !summary.state.is_terminal() {
            out.note(format!("nothing is running; start it: checkrein up{}", context.data_option()));
        }
        session.close().await?;
        return Ok(Exit::Completed);
    }
    let signals = Signals::listen("no longer watching")?;
    let mut follow = Follow::new(context, session.api(), summary.id, args.from_start).await?;
    let rest = follow.until_it_rests(&signals).await?;
    session.close().await?;
    Ok(match rest {
        Rest::In(state) => Exit::from(state),
        Rest::Interrupted | Rest::Unread => Exit::Completed,
    })
}
