//! Tasks that are over for longer than their own policy keeps them, and what is
//! written on their tombstones.

use checkrein_shared::api::{Epitaph, TaskState};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, TaskId};
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::engine::{self, read_state};
use crate::inputs::Loader;
use crate::lifecycle::{State, Task};
use crate::store::{Forget, Prune, Tombstone};
use crate::views;

/// How many tasks are read at a time.
const PAGE: usize = 64;

/// How many tasks are pruned at once.
const RETIRED_MAX: usize = 1_000;

/// The longest text on a tombstone, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// The note on a tombstone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    name: String,
    outcome: TaskState,
    detail: String,
    created_at: Timestamp,
    ended_at: Timestamp,
    checkpoint: Option<CheckpointId>,
    checkpoint_hash: Option<Digest>,
}

/// The tasks that no policy keeps any more, the first thousand.
pub(super) async fn due(store: &dyn Prune, loader: &Loader, now: Timestamp) -> Result<Vec<Forget>, Error> {
    let mut due = Vec::new();
    let mut after: Option<TaskId> = None;
    loop {
        let page = store.tasks(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(due) };
        after = Some(last.task.clone());
        for row in page {
            let task = read_state(&row.task, row.stored.state)?;
            // Nobody may forget that an effect's outcome is unknown.
            if !matches!(task.state, State::Done { .. }) || !task.effects.is_empty() {
                continue;
            }
            // Without its policy nobody knows how long it is to be kept: that is damage, which marking will report.
            let policy = loader.policy(task.policy.digest).await.map_err(engine::Error::from)?;
            if task.updated_at.plus(policy.policy().retention.done.to_duration()) <= now && due.len() < RETIRED_MAX {
                due.push(Forget { version: row.stored.version, note: note(&task), task: row.task });
            }
        }
    }
}

fn note(task: &Task) -> serde_json::Value {
    let summary = views::summary(task);
    let short = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect();
    let note = Note {
        name: short(&summary.name),
        outcome: summary.state,
        detail: short(&summary.detail),
        created_at: task.created_at,
        ended_at: task.updated_at,
        checkpoint: task.head.as_ref().map(|head| head.id.clone()),
        checkpoint_hash: task.head.as_ref().map(|head| head.hash),
    };
    serde_json::to_value(note).expect("a note is plain data")
}

/// What a tombstone says; `None` where its note can't be read.
pub(super) fn epitaph(tombstone: Tombstone) -> Option<Epitaph> {
    let Tombstone { task, records, last_hash, forgotten_at, note } = tombstone;
    let Note { name, outcome, detail, created_at, ended_at, checkpoint, checkpoint_hash } =
        Note::deserialize(note).ok()?;
    let pruned_at = forgotten_at;
    Some(Epitaph {
        id: task,
        name,
        outcome,
        detail,
        created_at,
        ended_at,
        checkpoint,
        checkpoint_hash,
        records,
        last_hash,
        pruned_at,
    })
}

/// What all tombstones say.
pub(super) async fn epitaphs(store: &dyn Prune) -> Result<Vec<Epitaph>, Error> {
    let mut epitaphs = Vec::new();
    let mut after: Option<TaskId> = None;
    loop {
        let page = store.tombstones(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(epitaphs) };
        after = Some(last.task.clone());
        epitaphs.extend(page.into_iter().filter_map(epitaph));
    }
}
