//! `checkpoint list|show|verify|diff|restore`.

use std::path::Path;

use checkrein_shared::api::Api;
use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, TaskId};
use checkrein_shared::records::CheckpointRef;
use checkrein_shared::tree::materialise::materialise;
use checkrein_shared::tree::{Changeset, Manifest, diff, node};
use serde_json::json;

use crate::args::CheckpointCommand;
use crate::client::{ApiBlobs, Session, find_checkpoint, find_task, load_checkpoint};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{checkpoint_lines, coloured_diff, columns, shortened};

/// Carries out a command about checkpoints.
pub(crate) async fn run(context: &Context, command: CheckpointCommand) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    match command {
        CheckpointCommand::List { task } => list(context, &session, &task).await?,
        CheckpointCommand::Show { task, checkpoint } => show(context, &session, &task, &checkpoint).await?,
        CheckpointCommand::Verify { task } => verify(context, &session, &task).await?,
        CheckpointCommand::Diff { task, checkpoint, since } => {
            show_diff(context, &session, &task, &checkpoint, since.as_deref()).await?;
        }
        CheckpointCommand::Restore { task, checkpoint, to } => {
            restore(context, &session, &task, &checkpoint, &to).await?;
        }
    }
    session.close().await?;
    Ok(Exit::Completed)
}

async fn list(context: &Context, session: &Session, task: &str) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let references = session.api().checkpoints(&id).await?;
    let out = &context.out;
    out.object(&references)?;
    let mut rows: Vec<[String; 5]> = Vec::new();
    if !out.is_json() {
        for reference in &references {
            let checkpoint = load_checkpoint(session.api(), reference).await?;
            rows.push([
                reference.id.to_string(),
                checkpoint.created_at.to_string(),
                checkpoint.trigger.as_str().to_owned(),
                format!("attempt {}", checkpoint.epoch),
                shortened(&reference.hash.to_string()),
            ]);
        }
    }
    columns(&rows).iter().for_each(|line| out.line(line));
    Ok(())
}

async fn show(context: &Context, session: &Session, task: &str, name: &str) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let reference = find_checkpoint(session.api(), &id, name).await?;
    let checkpoint = load_checkpoint(session.api(), &reference).await?;
    context.out.object(&checkpoint)?;
    checkpoint_lines(&context.out, &checkpoint).iter().for_each(|line| context.out.line(line));
    Ok(())
}

async fn verify(context: &Context, session: &Session, task: &str) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let length = verify_chain(session.api(), &id).await?;
    let head = session.api().task(&id).await?.head;
    let out = &context.out;
    out.object(&json!({ "task": id, "checkpoints": length, "head": head }))?;
    let head = head.map_or_else(String::new, |head| format!("; head {}", head.hash));
    out.line(format!("{length} checkpoints, each with the hash that it says and after its predecessor{head}"));
    Ok(())
}

/// Computes the hashes of the whole chain again, and compares its end with the head that the task names.
pub(crate) async fn verify_chain(api: &dyn Api, id: &TaskId) -> Result<usize, Failure> {
    let references = api.checkpoints(id).await?;
    let broken = |what: String| {
        Failure::new(Exit::Integrity, what).hint("keep the data folder as it is: it shows what was changed")
    };
    let mut previous: Option<&CheckpointRef> = None;
    for reference in &references {
        let checkpoint = load_checkpoint(api, reference).await?;
        checkpoint.check_follows(previous).map_err(|error| broken(error.to_string()))?;
        previous = Some(reference);
    }
    let head = api.task(id).await?.head;
    if head.as_ref().map(|head| head.hash) != previous.map(|last| last.hash) {
        return Err(broken("the chain does not end at the head that the task names".to_owned()));
    }
    Ok(references.len())
}

async fn show_diff(
    context: &Context,
    session: &Session,
    task: &str,
    name: &str,
    since: Option<&str>,
) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let reference = find_checkpoint(session.api(), &id, name).await?;
    let earlier = match since {
        Some(since) => Some(find_checkpoint(session.api(), &id, since).await?),
        None => None,
    };
    let (changeset, text) = change(session.api(), &session.blobs(), &reference, earlier.as_ref()).await?;
    context.out.object(&json!({ "changeset": changeset, "diff": text }))?;
    print_diff(context, &changeset, &text);
    if changeset.is_empty()
        && earlier.is_none()
        && let Some(other) = last_with_a_change(session.api(), &id, &reference).await?
    {
        context.out.note(format!("before it, {other} had one: checkrein checkpoint diff {id} {other}"));
    }
    Ok(())
}

/// The newest checkpoint before `than` whose tree was not its base: after an apply there is nothing left to show.
async fn last_with_a_change(api: &dyn Api, id: &TaskId, than: &CheckpointRef) -> Result<Option<CheckpointId>, Failure> {
    for reference in api.checkpoints(id).await?.iter().rev().filter(|c| c.sequence < than.sequence) {
        let workspace = load_checkpoint(api, reference).await?.workspace;
        if workspace.tree != workspace.base {
            return Ok(Some(reference.id.clone()));
        }
    }
    Ok(None)
}

/// Prints what a checkpoint would change in the target.
pub(crate) async fn print_change(context: &Context, api: &dyn Api, reference: &CheckpointRef) -> Result<(), Failure> {
    let (changeset, text) = change(api, &ApiBlobs(api), reference, None).await?;
    print_diff(context, &changeset, &text);
    Ok(())
}

fn print_diff(context: &Context, changeset: &Changeset, text: &str) {
    if changeset.is_empty() {
        context.out.note("no change");
    } else if !context.out.is_json() {
        context.out.raw(coloured_diff(&context.out, text).as_bytes());
    }
}

/// The change of a checkpoint, against its base or an earlier checkpoint, and its readable form.
async fn change(
    api: &dyn Api,
    blobs: &dyn Blobs,
    reference: &CheckpointRef,
    earlier: Option<&CheckpointRef>,
) -> Result<(Changeset, String), Failure> {
    let checkpoint = load_checkpoint(api, reference).await?;
    let old = match earlier {
        Some(earlier) => load_checkpoint(api, earlier).await?.workspace.tree,
        None => checkpoint.workspace.base,
    };
    let (old, new) = (tree(blobs, old).await?, tree(blobs, checkpoint.workspace.tree).await?);
    let changeset = Changeset::between(&old, &new);
    let rendered = diff::render(blobs, &changeset, &diff::Limits::default()).await;
    Ok((changeset, rendered.text))
}

/// Loads a tree.
pub(crate) async fn tree(blobs: &dyn Blobs, root: Digest) -> Result<Manifest, Failure> {
    node::load_tree(blobs, root).await.map_err(|error| {
        let mut failure = Failure::caused(format!("the tree {} can't be read", shortened(&root.to_string())), &error);
        failure.exit = Exit::Integrity;
        failure
    })
}

async fn restore(context: &Context, session: &Session, task: &str, name: &str, to: &Path) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let reference = find_checkpoint(session.api(), &id, name).await?;
    let checkpoint = load_checkpoint(session.api(), &reference).await?;
    let written = lay_out(&session.blobs(), checkpoint.workspace.tree, to).await?;
    context.out.object(&json!({ "checkpoint": reference.id, "folder": to, "files": written }))?;
    context.out.line(format!("{written} files of {} in {}", reference.id, to.display()));
    Ok(())
}

/// Writes a tree to a new or empty folder; says how many files.
pub(crate) async fn lay_out(blobs: &dyn Blobs, root: Digest, to: &Path) -> Result<usize, Failure> {
    let manifest = tree(blobs, root).await?;
    let written = materialise(blobs, &manifest, to).await.map_err(|error| {
        Failure::caused("the files can't be written", &error).at(to.display()).hint("name a new or an empty folder")
    })?;
    Ok(written.written)
}
