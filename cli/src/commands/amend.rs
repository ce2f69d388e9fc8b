//! `amend`: changes what a task is about.

use checkrein_shared::api::{Action, Amendment};
use checkrein_shared::records::{SpecText, TaskSpec};
use checkrein_shared::task_file;

use super::people;
use crate::args::AmendArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// The largest specification that is read, in bytes.
const SPEC_BYTES_MAX: u64 = 1 << 20;

/// Amends a task.
pub(crate) async fn amend(context: &Context, args: &AmendArgs) -> Result<Exit, Failure> {
    let file = |path: &std::path::PathBuf| -> Result<TaskSpec, Failure> {
        Ok(task_file::load(path, None, &context.surroundings())?.spec)
    };
    let amendment = Amendment {
        objective: args.objective.clone(),
        spec: args.spec.as_deref().map(spec).transpose()?,
        plan: args.plan.as_ref().map(file).transpose()?.map(|spec| spec.plan),
        constraints: args.constraints.as_ref().map(file).transpose()?.map(|spec| spec.constraints),
    };
    people::act(context, &args.task, Action::Amend { amendment }).await
}

fn spec(path: &std::path::Path) -> Result<SpecText, Failure> {
    let shown = path.display();
    let failed = |error: &std::io::Error| {
        Failure::caused(format!("the specification `{shown}` can't be read"), error)
            .into_usage()
            .hint("name a text file")
    };
    let size = path.metadata().map_err(|error| failed(&error))?.len();
    if size > SPEC_BYTES_MAX {
        return Err(Failure::usage(format!("the specification `{shown}` is larger than 1 MiB")).hint("shorten it"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("the specification `{shown}` is empty")).hint("write it first"));
    }
    Ok(SpecText { spec_ref: shown.to_string(), text })
}
