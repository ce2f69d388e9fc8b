//! Reading the store page by page: tasks, chains and event lines.

use checkrein_shared::api::EventView;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{Checked, CheckpointRef};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;

use crate::describe::{event_view, submitted_view};
use crate::engine::{Engine, Error, read_state};
use crate::lifecycle::{ATTEMPT_TABLE, CONDITIONS_KEY, Conditions, EventKind, Task};
use crate::store::Recorded;

/// How many rows are read at a time.
const PAGE: usize = 256;

/// Calls `see` with every task and the number of its newest event.
pub(crate) async fn each_task(engine: &Engine, mut see: impl FnMut(Task, u64) + Send) -> Result<(), Error> {
    let mut after: Option<TaskId> = None;
    loop {
        let page = engine.store().tasks(after.as_ref(), PAGE).await?;
        let full = page.len() == PAGE;
        after = page.last().map(|row| row.task.clone());
        for row in page {
            see(read_state(&row.task, row.stored.state)?, row.stored.version);
        }
        if !full {
            return Ok(());
        }
    }
}

/// The most rows of a task's history that are shown.
const HISTORY_MAX: usize = 5_000;

/// What left the state of a task, in the order of its keys: the past for people.
pub(crate) async fn history<T: DeserializeOwned>(engine: &Engine, id: &TaskId, table: &str) -> Result<Vec<T>, Error> {
    let mut past = Vec::new();
    let mut after: Option<String> = None;
    while past.len() < HISTORY_MAX {
        let page = engine.store().rows(table, Some(id), after.as_deref().map(|key| (id, key)), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        for row in page {
            let read = T::deserialize(row.value);
            past.push(read.map_err(|e| Error::State { task: id.clone(), why: format!("{table} {}: {e}", row.key) })?);
        }
    }
    Ok(past)
}

/// What was looked at before the newest attempt; nothing before the first.
pub(crate) async fn conditions(engine: &Engine, id: &TaskId) -> Result<Vec<Checked>, Error> {
    let Some(row) = engine.store().row(id, ATTEMPT_TABLE, CONDITIONS_KEY).await? else { return Ok(Vec::new()) };
    let read = Conditions::deserialize(row);
    Ok(read.map_err(|e| Error::State { task: id.clone(), why: format!("its conditions: {e}") })?.checks)
}

/// The chain of a task, oldest first: what workers wrote, and control checkpoints on top.
pub(crate) async fn chain(engine: &Engine, id: &TaskId) -> Result<Vec<CheckpointRef>, Error> {
    let mut chain: Vec<CheckpointRef> = Vec::new();
    let mut add = |reference: CheckpointRef| {
        if chain.last().is_none_or(|last| last.sequence < reference.sequence) {
            chain.push(reference);
        }
    };
    let mut after = 0;
    loop {
        let page = engine.store().events(id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(chain) };
        after = last.record.version;
        for recorded in page {
            let task = read_state(id, recorded.record.state)?;
            if let Ok(EventKind::CheckpointWritten { checkpoint, record, .. }) =
                EventKind::deserialize(recorded.record.event)
            {
                add(CheckpointRef {
                    id: checkpoint.checkpoint_id.clone(),
                    hash: checkpoint.integrity.checkpoint_hash,
                    sequence: checkpoint.sequence,
                    record,
                });
            }
            if let Some(head) = task.head {
                add(head);
            }
        }
    }
}

/// Events of a task after a version, as lines.
pub(crate) async fn event_views(engine: &Engine, id: &TaskId, after: u64) -> Result<Vec<EventView>, Error> {
    engine.store().events(id, after, PAGE).await?.into_iter().map(|recorded| view(id, recorded)).collect()
}

fn view(id: &TaskId, recorded: Recorded) -> Result<EventView, Error> {
    let record = recorded.record;
    let task = read_state(id, record.state)?;
    if record.kind == "submitted" {
        return Ok(submitted_view(&task));
    }
    let event = EventKind::deserialize(record.event)
        .map_err(|e| Error::State { task: id.clone(), why: format!("event {}: {e}", record.version) })?;
    Ok(event_view(record.version, record.at, &event, &task))
}
