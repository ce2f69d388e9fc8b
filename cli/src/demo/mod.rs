//! `demo`: an example in a new folder, run with the same code as `run`, and
//! told as it goes.
//!
//! The agents are scripts and say so. Where a demo plays a colleague or a
//! person, it says so too.

mod drift;
mod extract;
mod hello;
mod kill;
mod takeover;
mod tell;

use checkrein_shared::api::{EventView, TaskState, TaskView};

use crate::args::{DemoArgs, DemoName, TaskOptions};
use crate::client::Session;
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::submission::{self, Prepared};
use extract::Place;
use tell::tell;

/// Runs a demo.
pub(crate) async fn run(context: Context, args: &DemoArgs) -> Result<Exit, Failure> {
    let place = extract::fresh(args.name, args.to.as_deref())?;
    let context = context.for_demo(place.data());
    begin(&context, args, &place);
    let done = match (args.kill, args.name) {
        (true, _) => kill::run(&context, &place, args.name).await,
        (false, DemoName::Hello) => hello::run(&context, &place).await,
        (false, DemoName::Drift) => drift::run(&context, &place).await,
        (false, DemoName::Takeover) => takeover::run(&context, &place).await,
    };
    let hint = format!("look around in {}", place.root.display());
    done.map_err(|failure| failure.or_hint(hint))?;
    end(&context, args, &place);
    Ok(Exit::Completed)
}

fn begin(context: &Context, args: &DemoArgs, place: &Place) {
    let out = &context.out;
    out.note(out.bold(&format!("checkrein demo {}", args.name.as_str())));
    out.note(format!("Everything is in {}; paths below are relative to it.", place.root.display()));
}

fn end(context: &Context, args: &DemoArgs, place: &Place) {
    let out = &context.out;
    let name = args.name.as_str();
    tell(out, &format!("Look around in {}. Two commands to try:", place.example().display()));
    out.note(format!("  {} show last --why{}", context.program(), context.data_option()));
    if args.kill {
        out.note(format!("  {} checkpoint verify last{}", context.program(), context.data_option()));
    } else {
        out.note(format!("  {} demo {name} --kill", context.program()));
    }
}

/// The task of the example, ready to submit.
fn prepare(context: &Context, place: &Place) -> Result<Prepared, Failure> {
    let options = TaskOptions { workspace: None, policy: None, agent: None };
    submission::prepare(context, &place.task_file().display().to_string(), &options)
}

/// Runs the example's task until it rests; `see` is shown every event.
async fn run_task(context: &Context, place: &Place, see: impl FnMut(&EventView) + Send) -> Result<Exit, Failure> {
    commands::run_in_place(context, prepare(context, place)?, false, see).await
}

/// The newest task as it is now.
async fn task(context: &Context) -> Result<TaskView, Failure> {
    let session = Session::open(context).await?;
    let id = crate::client::find_task(session.api(), "last").await?.id;
    let task = session.api().task(&id).await?;
    session.close().await?;
    Ok(task)
}

/// A demo shows how it goes, so it has to go that way.
fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(Exit::Failed, format!("the demo did not go as it should: {what}"))) }
}

/// The change is applied, exactly once.
fn expect_applied(task: &TaskView) -> Result<(), Failure> {
    expect(task.summary.state == TaskState::Completed, "the task is not completed")?;
    expect(task.applied.len() == 1, "the change was not applied exactly once")
}
