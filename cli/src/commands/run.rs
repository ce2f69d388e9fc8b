//! `run`: one task, in this process or in the one that serves the data folder.

use checkrein_shared::api::routes::{Health, Serving};
use checkrein_shared::api::{Api, EffectCursor, TaskState, TaskView};
use checkrein_shared::ids::TaskId;
use serde_json::json;

use super::{Follow, Rest, Signals, next, prompt, rests};
use crate::args::RunArgs;
use crate::client;
use crate::context::Context;
use crate::embedded::Embedded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::submission::{self, Prepared};

/// Runs a task until it rests.
pub(crate) async fn run(context: &Context, args: &RunArgs) -> Result<Exit, Failure> {
    let prepared = submission::prepare(context, &args.what, &args.task)?;
    if args.dry_run {
        return dry_run(context, &prepared);
    }
    if let Some((api, health)) = client::connect(context).await? {
        return attach(context, &api, &health, prepared, args.new).await;
    }
    run_in_place(context, prepared, args.new, |_| {}).await
}

fn dry_run(context: &Context, prepared: &Prepared) -> Result<Exit, Failure> {
    let out = &context.out;
    prepared.warnings.iter().for_each(|warning| out.warn(warning));
    let submission = &prepared.submission;
    out.object(submission)?;
    let text = serde_json::to_string_pretty(&submission.spec).map_err(|e| Failure::caused("can't write JSON", &e))?;
    out.line(text);
    out.note(format!("task and policy `{}` are in order; nothing was started", submission.policy_name));
    Ok(Exit::Completed)
}

/// Opens the data folder and runs the task with all roles in this process. `see` is shown every event.
pub(crate) async fn run_in_place(
    context: &Context,
    prepared: Prepared,
    new: bool,
    see: impl FnMut(&checkrein_shared::api::EventView) + Send,
) -> Result<Exit, Failure> {
    let mut embedded = Embedded::open(context).await?;
    let ran = run_embedded(context, &mut embedded, prepared, new, see).await;
    embedded.close_after(ran).await
}

async fn run_embedded(
    context: &Context,
    embedded: &mut Embedded,
    prepared: Prepared,
    new: bool,
    mut see: impl FnMut(&checkrein_shared::api::EventView) + Send,
) -> Result<Exit, Failure> {
    let signals = Signals::listen("parking")?;
    let api = embedded.api();
    let (id, earlier) = begin(context, api.as_ref(), prepared, new).await?;
    let mut follow = Follow::new(context, api.as_ref(), id.clone(), !earlier).await?;
    embedded.start(Serving::One(id.clone())).await?;
    let embedded = &*embedded;
    let see = |event: &checkrein_shared::api::EventView| {
        embedded.note(event);
        see(event);
    };
    let rest = tokio::select! {
        rest = until_nobody_can_help(context, embedded, &mut follow, &signals, &id, see) => rest?,
        failure = embedded.failed() => return Err(failure),
        failure = embedded.disk_full() => {
            context.out.progress_done();
            return Err(failure);
        }
    };
    conclude(context, api.as_ref(), &id, rest, false).await
}

/// Follows the task; where it waits for a person who sits here, asks.
async fn until_nobody_can_help(
    context: &Context,
    embedded: &Embedded,
    follow: &mut Follow<'_>,
    signals: &Signals,
    id: &TaskId,
    mut see: impl FnMut(&checkrein_shared::api::EventView) + Send,
) -> Result<Rest, Failure> {
    loop {
        let rest = follow.until(signals, &mut see).await?;
        let asked = matches!(rest, Rest::In(TaskState::Waiting | TaskState::Held)) && context.out.can_ask();
        if !asked {
            return Ok(rest);
        }
        let api = embedded.api();
        tokio::select! {
            answer = prompt::ask(context, api.as_ref(), id) => match answer? {
                prompt::Answer::GoOn => {}
                prompt::Answer::Quit => return Ok(rest),
            },
            () = signals.first() => return Ok(Rest::Interrupted),
        }
    }
}

/// Hands the task to the process that serves the data folder, and watches it there.
async fn attach(
    context: &Context,
    api: &dyn Api,
    health: &Health,
    prepared: Prepared,
    new: bool,
) -> Result<Exit, Failure> {
    let earlier = if new { None } else { earlier(api, &prepared).await? };
    if let Serving::One(served) = &health.serving
        && earlier.as_ref().map(|task| &task.summary.id) != Some(served)
    {
        let what = format!("another instance is running: process {} runs task {served}", health.pid);
        return Err(Failure::unable(what)
            .at(context.data.display())
            .hint("wait for it, use another --data DIR, or stop it and use `checkrein up` for several tasks"));
    }
    context.out.note(format!("process {} does the work; this one watches", health.pid));
    let signals = Signals::listen("no longer watching")?;
    let (id, earlier) = begin(context, api, prepared, new).await?;
    let watched = async {
        let mut follow = Follow::new(context, api, id.clone(), !earlier).await?;
        let rest = follow.until_it_rests(&signals).await?;
        conclude(context, api, &id, rest, true).await
    };
    match watched.await {
        // Whoever did the work has ended, perhaps in the middle of an answer: the folder says how it went.
        Err(_) if matches!(client::connect(context).await, Ok(None)) => after_the_end(context, &id).await,
        concluded => concluded,
    }
}

/// Says how a task stands whose process has ended.
async fn after_the_end(context: &Context, id: &TaskId) -> Result<Exit, Failure> {
    let session = client::Session::open(context).await?;
    let concluded = async {
        let state = session.api().task(id).await?.summary.state;
        let rest = if rests(state) { Rest::In(state) } else { Rest::Interrupted };
        conclude(context, session.api(), id, rest, false).await
    };
    let concluded = concluded.await;
    session.close().await?;
    concluded
}

/// The task to run: an earlier one of the same file that is not finished, or a new one.
async fn begin(context: &Context, api: &dyn Api, prepared: Prepared, new: bool) -> Result<(TaskId, bool), Failure> {
    let out = &context.out;
    prepared.warnings.iter().for_each(|warning| out.warn(warning));
    let earlier = if new { None } else { earlier(api, &prepared).await? };
    let Some(task) = earlier else { return Ok((api.submit(prepared.submission).await?, false)) };
    let id = &task.summary.id;
    let state = task.summary.state;
    if state.is_terminal() {
        out.note(format!(
            "task {id} of this file is {}, and what it did outside would happen again: nothing is started (--new does it all again)",
            state.as_str()
        ));
        return Ok((id.clone(), true));
    }
    let goes_on = if rests(state) { "" } else { ": it goes on" };
    out.note(format!("task {id} of this file is {}{goes_on} (--new starts another)", state.as_str()));
    if differs(&task, &prepared) {
        out.warn("the file was changed since the task was submitted; the task goes on as it was: see `checkrein amend`, or use --new");
    }
    Ok((id.clone(), true))
}

/// The newest task of the same file, where it is not finished, or where doing it once more would repeat what it did
/// outside its scratch: whoever starts `run` again, after a crash perhaps, does not mean that.
async fn earlier(api: &dyn Api, prepared: &Prepared) -> Result<Option<TaskView>, Failure> {
    let Some(origin) = &prepared.submission.origin else { return Ok(None) };
    let tasks = api.tasks().await?;
    let mut of_this_file = tasks.iter().filter(|task| task.origin.as_ref() == Some(origin));
    let newest = of_this_file.clone().next();
    let Some(found) = of_this_file.find(|task| !task.state.is_terminal()).or(newest) else { return Ok(None) };
    // A task that was pruned has left its tombstone only.
    if found.state.is_terminal() && (found.pruned_at.is_some() || !acted_outside(api, &found.id).await?) {
        return Ok(None);
    }
    let task = api.task(&found.id).await?;
    let repeats = !found.state.is_terminal() || !differs(&task, prepared);
    Ok(repeats.then_some(task))
}

/// Whether a task did something outside its scratch, or may have done.
async fn acted_outside(api: &dyn Api, id: &TaskId) -> Result<bool, Failure> {
    let mut after = None;
    loop {
        let page = api.effects(Some(id), after.as_ref()).await?;
        let Some(last) = page.last() else { return Ok(false) };
        if page.iter().any(|entry| entry.status.may_have_happened()) {
            return Ok(true);
        }
        after = Some(EffectCursor { task: last.task_id.clone(), key: last.key });
    }
}

fn differs(task: &TaskView, prepared: &Prepared) -> bool {
    let spec = &prepared.submission.spec;
    let policy = checkrein_shared::json::digest(&prepared.submission.policy).ok();
    task.objective != spec.objective || policy != Some(task.policy.digest) || task.plan_hash != spec.plan.hash()
}

async fn conclude(context: &Context, api: &dyn Api, id: &TaskId, rest: Rest, served: bool) -> Result<Exit, Failure> {
    let task = api.task(id).await?;
    let exit = match rest {
        Rest::In(state) => Exit::from(state),
        Rest::Interrupted if rests(task.summary.state) => Exit::from(task.summary.state),
        Rest::Interrupted | Rest::Unread => Exit::Interrupted,
    };
    let out = &context.out;
    out.object(&json!({ "task": task, "exit": exit.code() }))?;
    if exit == Exit::Interrupted && !served {
        out.note(format!("parked; go on with: {}", next::go_on(context, &task)));
    } else {
        next::say(context, &task, served);
    }
    Ok(exit)
}
