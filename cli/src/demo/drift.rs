//! The demo `drift`: a colleague edits the project while the review runs.

use std::process::{Command, Stdio};

use checkrein_shared::api::EventView;

use super::{Place, expect, expect_applied, run_task, task, tell};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Runs it.
pub(super) async fn run(context: &Context, place: &Place) -> Result<(), Failure> {
    let out = &context.out;
    tell(
        out,
        "An agent (a script again) fixes project/slug.sh at its first attempt. While the reviewer tests the change, \
         a colleague will edit project/NOTES.md. The demo plays the colleague itself, outside of everything that \
         confines the agent.",
    );
    out.note("");
    let mut edited = None;
    let mut told = false;
    let exit = run_task(context, place, |event| {
        if edited.is_none() && reviews_begin(event) {
            edited = Some(colleague(place));
            tell(
                out,
                "The review runs. (The demo plays the colleague: it runs colleague.sh, which adds a line to NOTES.md.)",
            );
            out.note("");
        }
        if !told && event.kind == "target_drifted" {
            told = true;
            tell(
                out,
                "The verdict would have been about a project that is no longer there: `base` changed from the old tree \
                 to the new one. The change is put on top of the project as it is now, and tested again.",
            );
            out.note("");
        }
    })
    .await?;
    edited.unwrap_or_else(|| Err(Failure::new(Exit::Failed, "the demo did not go as it should: no review began")))?;
    expect(exit == Exit::Completed, "the run is not completed")?;
    expect(told, "nobody noticed the colleague's edit")?;
    expect_applied(&task(context).await?)?;
    let notes = std::fs::read_to_string(place.project().join("NOTES.md"))
        .map_err(|error| Failure::caused("the project can't be read", &error))?;
    expect(notes.contains("The blog will use them, too."), "the colleague's edit is gone")?;
    tell(out, "The fix is applied, and the colleague's line is still in project/NOTES.md.");
    Ok(())
}

/// Whether this event is the checkpoint that a review waits for.
fn reviews_begin(event: &EventView) -> bool {
    event.kind == "checkpoint_written" && event.state == checkrein_shared::api::TaskState::Reviewing
}

/// Edits the project as somebody else would.
fn colleague(place: &Place) -> Result<(), Failure> {
    let ran = Command::new("sh").arg(place.example().join("colleague.sh")).stdin(Stdio::null()).status();
    let status = ran.map_err(|error| Failure::caused("colleague.sh can't be run", &error))?;
    expect(status.success(), "colleague.sh failed")
}
