//! `init`: writes a task file and a policy for the project in a folder.
//!
//! It looks which kind of project it is, and writes a verifier that runs its
//! tests. It overwrites nothing unless it is told to, and changes nothing else.

mod detect;
mod templates;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use checkrein_shared::task_file::{self, check_workspace};
use serde_json::json;

use crate::args::InitArgs;
use crate::context::{Context, quoted};
use crate::exit::Exit;
use crate::failure::Failure;

/// The task file that `init` writes.
pub(crate) const TASK_FILE: &str = "checkrein.yaml";
/// The policy that `init` writes.
pub(crate) const POLICY_FILE: &str = "checkrein-policy.yaml";

/// Writes both files.
pub(crate) fn run(context: &Context, args: &InitArgs) -> Result<Exit, Failure> {
    let around = context.surroundings();
    let folder = check_workspace(&args.folder, &around)
        .map_err(|error| Failure::usage(error.message).at(args.folder.display()).hint(error.hint))?;
    let kind = match args.kind {
        Some(kind) => kind,
        None => detect::detect(&folder)?,
    };
    let project = detect::look(&folder, kind);
    let agent = args.agent.as_deref();
    if let Some(agent) = agent {
        // A wrong name is told now, not at the first run.
        crate::agents::resolve(agent, Some(&folder), |_| false)?;
    }
    let files = [
        (folder.join(TASK_FILE), templates::task(&folder, agent)),
        (folder.join(POLICY_FILE), templates::policy(&project)),
    ];
    if !args.force {
        refuse_what_is_there(&files)?;
    }
    for (path, text) in &files {
        write(path, text, args.force)?;
    }
    check(&files, &around)?;
    report(context, &files, &project)
}

fn refuse_what_is_there(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    match files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        Some((path, _)) => Err(Failure::usage("the file is there already; nothing was written")
            .at(path.display())
            .hint("edit it, or overwrite it with --force")),
        None => Ok(()),
    }
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o644).custom_flags(nix::libc::O_NOFOLLOW);
    let opened = if force { options.create(true).truncate(true) } else { options.create_new(true) }.open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::caused("the file can't be written", &error).at(path.display()))
}

/// What was written must load: these are templates of this program.
fn check(files: &[(PathBuf, String)], around: &task_file::Surroundings) -> Result<(), Failure> {
    task_file::load(&files[0].0, None, around)?;
    checkrein_shared::policy::load_file(&files[1].0)?;
    Ok(())
}

fn report(context: &Context, files: &[(PathBuf, String)], project: &detect::Project) -> Result<Exit, Failure> {
    let out = &context.out;
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    out.object(&json!({ "files": names, "kind": project.name(), "test": project.test }))?;
    names.iter().for_each(|name| out.line(format!("wrote {name}")));
    out.note(format!("it is a {} project; its tests are run by: {}", project.name(), project.test.join(" ")));
    out.note("next:");
    out.note(format!("  edit `objective` and `agent` in {}", names[0]));
    out.note(format!("  {} run {}", context.program(), quoted(&names[0])));
    Ok(Exit::Completed)
}
