//! The thread that brings the index up to the journal, and then answers.
//!
//! It works on what is durable already, while the appender waits for the disk
//! with the next batch.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::shared::Shared;
use crate::store::error::{CommitError, Error};
use crate::store::journal::{Head, Position, StateText};
use crate::store::lock::FolderLock;
use crate::store::model::{Committed, Recorded};
use crate::store::projection::{DELIVERED, Delivered, Projection};

/// Every how many records the index is pushed to the disk: bounds what a restart replays.
const CHECKPOINT_EVERY: u64 = 20_000;

/// After so long without a record, the index is written.
const IDLE: Duration = Duration::from_millis(200);

/// How often an idle store looks whether the index broke, and how rarely a mending that keeps failing is tried.
const CARE: Duration = Duration::from_secs(1);
const CARE_MAX: Duration = Duration::from_secs(8);

/// How many batches are indexed at once.
const BATCHES_MAX: usize = 8;

/// Where the answer to a commit goes.
pub(super) type Reply = oneshot::Sender<Result<Committed, CommitError>>;

/// A record that is on the disk. That of a task holds neither event, decision nor state any more; their text is there.
pub(super) struct Durable {
    pub(super) recorded: Recorded,
    /// The text of the state.
    pub(super) state: StateText,
    pub(super) position: Position,
    pub(super) reply: Option<Reply>,
}

/// Works until the appender ends, then makes the index durable and frees the folder.
pub(super) fn run(shared: &Arc<Shared>, batches: &Receiver<Vec<Durable>>, lock: FolderLock) {
    let mut durable = *shared.head.borrow();
    let mut checkpointed = durable.count;
    loop {
        let Some(mut records) = next_batch(shared, batches, durable) else { break };
        for more in batches.try_iter().take(BATCHES_MAX - 1) {
            records.extend(more);
        }
        if let Some(Durable { recorded, .. }) = records.last() {
            durable = Head { count: recorded.record.sequence, hash: Some(recorded.hash) };
        }
        let indexed = bring_up(shared, &records, durable);
        answer(shared, records, &indexed);
        if durable.count >= checkpointed + CHECKPOINT_EVERY {
            checkpoint(shared);
            checkpointed = durable.count;
        }
    }
    checkpoint(shared);
    // The index holds a lock of its own on its file: it is closed before the folder is free.
    drop(shared.index.write().unwrap_or_else(PoisonError::into_inner).take());
    drop(lock);
}

/// Waits for records; `None` once the appender has ended. Meanwhile what is only in memory is written, and the next
/// start has nothing to replay. An index that broke is mended, too: everybody reads before committing, so while nothing
/// can be read no record would come that made somebody mend it.
fn next_batch(shared: &Shared, batches: &Receiver<Vec<Durable>>, durable: Head) -> Option<Vec<Durable>> {
    let (mut wait, mut is_written) = (IDLE, false);
    loop {
        match batches.recv_timeout(wait) {
            Ok(records) => return Some(records),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if shared.failure().is_some() {
            let is_mended = bring_up(shared, &[], durable).is_ok();
            (wait, is_written) = if is_mended { (IDLE, false) } else { ((wait * 2).clamp(CARE, CARE_MAX), is_written) };
            continue;
        }
        if !is_written {
            note_failure(shared.with_index(|index| index.write().map_err(Error::Index)), "written");
        }
        (wait, is_written) = (CARE, true);
    }
}

/// Brings the index up to `durable`: with the records at hand, or by mending it from the journal.
fn bring_up(shared: &Shared, records: &[Durable], durable: Head) -> Result<(), String> {
    let applied = shared.with_index(|index| {
        let mut projection = Projection::new(index);
        for Durable { recorded, state, position, .. } in records {
            projection.add_with(recorded, *position, state.as_bytes()).map_err(Error::Index)?;
        }
        projection.finish().map_err(Error::Index)
    });
    // Whatever mends the index later brings it up to these, too; until then nobody reads it.
    forget_delivered(shared, records);
    if applied.is_err() {
        shared.mend(durable).map_err(|error| {
            tracing::error!(%error, "the store's index can't be mended yet");
            shared.failure().unwrap_or_else(|| error.to_string())
        })?;
    }
    shared.head.send_replace(durable);
    Ok(())
}

fn answer(shared: &Shared, records: Vec<Durable>, indexed: &Result<(), String>) {
    for Durable { recorded, reply, .. } in records {
        let Some(reply) = reply else { continue };
        let answer = match indexed {
            Ok(()) => Ok(Committed { sequence: recorded.record.sequence, version: recorded.record.version }),
            // It is in the journal, but nobody could read it now: the caller must not go on.
            Err(failure) => Err(CommitError::Store(Error::Unusable(failure.clone()))),
        };
        // Whoever asked may have given up waiting.
        let _gone = reply.send(answer);
        shared.unanswered.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The outbox no longer holds these, so they need not be filtered out any more.
fn forget_delivered(shared: &Shared, records: &[Durable]) {
    let marks = records.iter().map(|durable| &durable.recorded.record).filter(|record| record.kind == DELIVERED);
    for record in marks {
        let Ok(delivered) = serde_json::from_value::<Delivered>(record.event.clone()) else { continue };
        let mut pending = shared.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &delivered.messages {
            pending.remove(id);
        }
    }
}

fn checkpoint(shared: &Shared) {
    note_failure(shared.with_index(|index| index.checkpoint().map_err(Error::Index)), "made durable");
}

/// Nobody waits for this: the journal has everything, and the index is mended soon.
fn note_failure(result: Result<(), Error>, what: &str) {
    if let Err(error) = result {
        tracing::error!(%error, "the store's index can't be {what}");
    }
}
