//! The demo `takeover`: the agent fails, and a person does it.

use std::process::{Command, Stdio};

use super::tell::typed;
use super::{Place, expect, expect_applied, run_task, task, tell};
use crate::args::{HandbackArgs, TakeoverArgs};
use crate::commands::takeover;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

const NOTE: &str = "the whole rule";
const RUN: &str = "checkrein run takeover/task.yaml --data data";

/// Runs it.
pub(super) async fn run(context: &Context, place: &Place) -> Result<(), Failure> {
    let out = &context.out;
    tell(
        out,
        "An agent (a script again) shall teach project/leap.sh the whole rule for leap years. It gets half of it right, \
         twice. The policy allows one retry; then a person is asked.",
    );
    out.note("");
    let exit = run_task(context, place, |_| {}).await?;
    expect(exit == Exit::Waiting, "no person was asked")?;

    let folder = place.root.join("mine");
    tell(out, "From here the demo plays the person, with the commands that you would type.");
    typed(out, "checkrein takeover last --to mine --data data");
    let args = TakeoverArgs { task: "last".to_owned(), to: Some(folder.clone()) };
    takeover::takeover(context, &args).await?;

    let script = place.example().join("person.sh");
    typed(out, "sh takeover/person.sh mine");
    person(context, &script, &folder)?;

    typed(out, &format!("checkrein handback last --note '{NOTE}' --data data"));
    takeover::handback(context, &HandbackArgs { task: "last".to_owned(), note: Some(NOTE.to_owned()) }).await?;

    tell(out, "What the person did is reviewed like everything else. The same `run` goes on:");
    typed(out, RUN);
    let exit = run_task(context, place, |_| {}).await?;
    expect(exit == Exit::Completed, "the run is not completed")?;
    expect_applied(&task(context).await?)?;
    let leap = std::fs::read_to_string(place.project().join("leap.sh"))
        .map_err(|error| Failure::caused("the project can't be read", &error))?;
    expect(leap.contains("400"), "the person's work is not in the project")?;
    tell(out, "The person's work is in project/, tested by the reviewer like the agent's.");
    Ok(())
}

/// Plays the person: runs the script that edits the files, and shows what it prints.
fn person(context: &Context, script: &std::path::Path, folder: &std::path::Path) -> Result<(), Failure> {
    let ran = Command::new("sh").arg(script).arg(folder).stdin(Stdio::null()).output();
    let output = ran.map_err(|error| Failure::caused("person.sh can't be run", &error))?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        context.out.note(format!("    {}", crate::output::shown(line)));
    }
    expect(output.status.success(), "person.sh failed")
}
