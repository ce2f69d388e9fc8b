//! The demos with `--kill`: the run is killed in the middle, and goes on.
//!
//! The run is a process of its own, killed with SIGKILL as soon as its first
//! checkpoint is out. What it had told until then must still be there after the
//! resumption, and nothing may have happened twice.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use checkrein_shared::api::EventView;
use serde_json::Value;

use super::tell::typed;
use super::{Place, expect, expect_applied, run_task, task, tell};
use crate::args::DemoName;
use crate::client::{Session, find_task};
use crate::commands::verify_chain;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::event_lines;

/// Runs it.
pub(super) async fn run(context: &Context, place: &Place, name: DemoName) -> Result<(), Failure> {
    let out = &context.out;
    tell(out, "The run is a process of its own. As soon as its first checkpoint is out, it is killed (SIGKILL).");
    let command = format!("checkrein run {}/task.yaml --data data", name.as_str());
    typed(out, &command);
    let before = until_the_first_checkpoint(context, place)?;
    let number = before.len();
    tell(out, &format!("Killed. It had told of {number} events. The same command goes on where it was:"));
    typed(out, &command);
    let exit = run_task(context, place, |_| {}).await?;
    let expected = if name == DemoName::Takeover { Exit::Waiting } else { Exit::Completed };
    expect(exit == expected, "the run did not end as it does without a kill")?;
    check(context, &before, name).await?;
    Ok(())
}

/// Starts `run`, shows what it tells, and kills it at its first checkpoint. Gives back what it told.
fn until_the_first_checkpoint(context: &Context, place: &Place) -> Result<Vec<EventView>, Failure> {
    let mut run = start(context, place)?;
    let output = run.stdout.take().expect("the output is piped");
    let mut told = Vec::new();
    let mut killed = false;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| Failure::caused("the run can't be read", &error))?;
        let Some(event) = event(&line) else { continue };
        event_lines(&context.out, &event).iter().for_each(|line| context.out.note(line));
        killed = event.kind == "checkpoint_written";
        told.push(event);
        if killed {
            run.kill().map_err(|error| Failure::caused("the run can't be killed", &error))?;
            break;
        }
    }
    run.wait().map_err(|error| Failure::caused("the run can't be waited for", &error))?;
    expect(killed, "the run ended before its first checkpoint")?;
    Ok(told)
}

fn start(context: &Context, place: &Place) -> Result<Child, Failure> {
    let failed = |error: &std::io::Error| Failure::caused("the run can't be started", error);
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command.arg("run").arg(place.task_file()).arg("--data").arg(&context.data).arg("--json");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| failed(&error))
}

/// The event in a line of `run --json`; other lines are about the whole run.
fn event(line: &str) -> Option<EventView> {
    let mut line: Value = serde_json::from_str(line).ok()?;
    serde_json::from_value(line.get_mut("event")?.take()).ok()
}

/// Nothing that was told is lost or different, and nothing was done twice.
async fn check(context: &Context, before: &[EventView], name: DemoName) -> Result<(), Failure> {
    let out = &context.out;
    let session = Session::open(context).await?;
    let id = find_task(session.api(), "last").await?.id;
    let tasks = session.api().tasks().await?;
    let after = session.api().events(&id, 0, 0).await?;
    let length = verify_chain(session.api(), &id).await?;
    session.close().await?;
    expect(tasks.len() == 1, "there are two tasks now")?;
    let kept = before.iter().zip(&after).filter(|(old, new)| old == new).count();
    expect(kept == before.len(), "something that was told before the kill is gone or different")?;
    let view = task(context).await?;
    if name != DemoName::Takeover {
        expect_applied(&view)?;
    }
    tell(
        out,
        &format!(
            "Nothing was lost: the {kept} events from before the kill are there, unchanged, and the {length} checkpoints \
             still form one chain. Nothing was done twice: there is one task, and {} reached project/.",
            match view.applied.len() {
                0 => "nothing".to_owned(),
                1 => "one change".to_owned(),
                many => format!("{many} changes"),
            }
        ),
    );
    Ok(())
}
