//! `takeover` and `handback`: a person edits the files of a task.
//!
//! The files are laid out from the tree that the task stands at, and measured
//! again when they are handed back. The target is not touched by either.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::api::{Action, Api, TaskState, TaskView};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{EvidenceKind, EvidenceRef};
use checkrein_shared::tree::Entry;
use checkrein_worker::workspace::{Rules, StatCache, Survey, snapshot};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{checkpoint, next, rests};
use crate::args::{HandbackArgs, TakeoverArgs};
use crate::client::{ApiBlobs, Session, find_task};
use crate::context::{Context, quoted};
use crate::exit::Exit;
use crate::failure::Failure;

/// How long a running attempt has to reach a checkpoint before the command gives up waiting.
const PATIENCE: Duration = Duration::from_secs(600);

/// What has to be known at the hand-back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    folder: PathBuf,
    started_from: Digest,
}

/// Takes a task over.
pub(crate) async fn takeover(context: &Context, args: &TakeoverArgs) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let id = find_task(session.api(), &args.task).await?.id;
    let task = session.api().task(&id).await?;
    if task.summary.state == TaskState::Running && !session.is_served(&id) {
        return Err(Failure::unable(format!("task {id} was running when its process ended; nothing runs it now"))
            .hint(format!("let it go on first: {}", next::go_on(context, &task))));
    }
    let folder = take_over(context, session.api(), &task, args.to.as_deref()).await?;
    context.out.object(&json!({ "task": id, "folder": folder }))?;
    if !context.is_demo {
        let (program, data) = (context.program(), context.data_option());
        context.out.note(format!("when you are done: {program} handback {id} --note '..'{data}"));
    }
    session.close().await?;
    Ok(Exit::Completed)
}

/// Takes a task over and lays its files out; says where.
pub(crate) async fn take_over(
    context: &Context,
    api: &dyn Api,
    task: &TaskView,
    to: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let id = &task.summary.id;
    let folder = free_folder(context, id, to)?;
    let shown = folder.display().to_string();
    api.act(id, Action::Takeover { folder: shown.clone() }, &context.by).await?;
    let held = until_held(context, api, id).await?;
    let Some(tree) = held.tree.or(held.base) else {
        return Err(Failure::unable(format!("task {id} is yours, but it has no files yet: no attempt was made"))
            .hint(format!("hand it back: checkrein handback {id}")));
    };
    let written = checkpoint::lay_out(&ApiBlobs(api), tree, &folder).await?;
    write_note(context, id, &Note { folder: folder.clone(), started_from: tree })?;
    context.out.line(format!("task {id} is yours; its {written} files are in {}", quoted(&shown)));
    Ok(folder)
}

/// A folder that is new or empty, absolute.
fn free_folder(context: &Context, id: &TaskId, to: Option<&Path>) -> Result<PathBuf, Failure> {
    let failed = |folder: &Path, error: &std::io::Error| {
        Failure::caused("the folder can't be made", error).at(folder.display()).hint("name another one with --to DIR")
    };
    let folder = match to {
        Some(folder) => std::path::absolute(folder).map_err(|error| failed(folder, &error))?,
        None => {
            let parent = context.data.join("takeovers").join(id.as_str());
            let free = (1..).map(|n: u32| parent.join(n.to_string())).find(|folder| !folder.exists());
            free.expect("there are always more numbers")
        }
    };
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let mut inside = std::fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    if inside.next().is_some() {
        return Err(Failure::usage("the folder is not empty")
            .at(folder.display())
            .hint("name a new one with --to DIR"));
    }
    Ok(folder)
}

/// Waits until the task is held: a running attempt first writes a checkpoint.
async fn until_held(context: &Context, api: &dyn Api, id: &TaskId) -> Result<TaskView, Failure> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let task = api.task(id).await?;
        let state = task.summary.state;
        if state == TaskState::Held {
            return Ok(task);
        }
        if rests(state) || tokio::time::Instant::now() > deadline {
            return Err(Failure::unable(format!("task {id} was not handed over: it is {}", state.as_str()))
                .hint("look with `checkrein show`, and try again"));
        }
        context.out.progress("waiting for the running attempt to reach a checkpoint");
        api.events(id, task.version, 1_000).await?;
    }
}

fn note_file(context: &Context, id: &TaskId) -> PathBuf {
    context.data.join("takeovers").join(format!("{id}.json"))
}

fn write_note(context: &Context, id: &TaskId, note: &Note) -> Result<(), Failure> {
    let file = note_file(context, id);
    let failed = |error: &std::io::Error| Failure::caused("the takeover can't be noted", error).at(file.display());
    let text = serde_json::to_vec(note).map_err(|error| Failure::caused("the takeover can't be noted", &error))?;
    let folder = file.parent().unwrap_or(&context.data);
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    std::fs::write(&file, text).map_err(|error| failed(&error))
}

/// Hands a task back.
pub(crate) async fn handback(context: &Context, args: &HandbackArgs) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    let id = find_task(session.api(), &args.task).await?.id;
    let task = session.api().task(&id).await?;
    hand_back(context, session.api(), &task, args.note.clone()).await?;
    let after = session.api().task(&id).await?;
    context.out.object(&after)?;
    let served = session.is_served(&id);
    if !served {
        next::say(context, &after, served);
    }
    session.close().await?;
    Ok(Exit::Completed)
}

/// Measures the files of a held task and hands it back.
pub(crate) async fn hand_back(
    context: &Context,
    api: &dyn Api,
    task: &TaskView,
    note: Option<String>,
) -> Result<(), Failure> {
    let id = &task.summary.id;
    if task.summary.state != TaskState::Held {
        return Err(Failure::usage(format!("task {id} is not taken over: it is {}", task.summary.state.as_str()))
            .hint(format!("take it over first: checkrein takeover {id}")));
    }
    let file = note_file(context, id);
    let taken: Note = std::fs::read(&file)
        .map_err(|error| Failure::caused("the note of the takeover can't be read", &error).at(file.display()))
        .and_then(|bytes| {
            checkrein_shared::json::parse_as("note of a takeover", &bytes)
                .map_err(|error| Failure::caused("the note of the takeover can't be read", &error).at(file.display()))
        })
        .map_err(|failure| failure.hint("hand it back with the data folder with which it was taken over"))?;
    let tree = measure(api, task, &taken).await?;
    let action = Action::HandBack { tree, started_from: taken.started_from, note };
    api.act(id, action, &context.by).await?;
    // The files stay: they are the person's.
    let _ = std::fs::remove_file(&file);
    let same = if tree == taken.started_from { " (unchanged)" } else { "" };
    context.out.line(format!("task {id} is handed back{same}"));
    Ok(())
}

/// The tree of the folder, by the ignore rules of the base, its contents stored.
async fn measure(api: &dyn Api, task: &TaskView, taken: &Note) -> Result<Digest, Failure> {
    let blobs = ApiBlobs(api);
    let known = checkpoint::tree(&blobs, taken.started_from).await?;
    let rules = Arc::new(rules(api, task, &taken.folder).await?);
    let is_absent = |entry: &Entry| matches!(entry, Entry::File { .. }) && entry.blob().is_none();
    let absent = known.iter().filter(|(_, entry)| is_absent(entry)).map(|(path, entry)| (path.clone(), entry.clone()));
    let mut survey = Survey::new(rules).storing(&blobs, Some(&known));
    survey.absent = absent.collect();
    let measured = snapshot::snapshot(&taken.folder, &mut StatCache::in_memory(), &survey).await;
    Ok(measured
        .map_err(|error| Failure::caused("the files can't be measured", &error).at(taken.folder.display()))?
        .root)
}

/// The ignore rules of the task's base; those of the folder where the task has none yet.
async fn rules(api: &dyn Api, task: &TaskView, folder: &Path) -> Result<Rules, Failure> {
    let failed =
        |error: &checkrein_worker::workspace::rules::Error| Failure::caused("the ignore rules can't be read", error);
    if let Some(base) = task.base {
        let name = EvidenceRef::new(EvidenceKind::Report, &format!("rules-{}", base.short()))
            .map_err(|error| Failure::caused("the ignore rules have no name", &error))?;
        let artifacts = api.evidence(&task.summary.id).await?;
        if let Some(found) = artifacts.iter().rev().find(|artifact| artifact.reference == name) {
            return Rules::load(&ApiBlobs(api), found.evidence.digest).await.map_err(|error| failed(&error));
        }
    }
    Rules::read(folder).await.map_err(|error| failed(&error))
}
