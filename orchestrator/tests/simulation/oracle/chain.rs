//! The chain of checkpoints: each follows the one before, no two follow the same, and whatever one names is stored.

use checkrein_orchestrator::lifecycle::{EventKind, State, Task};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, CheckpointRef, Role};

use crate::blobs::MemoryBlobs;

pub(super) fn read(blobs: &MemoryBlobs, reference: &CheckpointRef) -> Option<Checkpoint> {
    blobs.bytes(reference.record).and_then(|bytes| json::parse_as("checkpoint", &bytes).ok())
}

/// The checkpoints that this event added, oldest first.
pub(super) fn added(
    blobs: &MemoryBlobs,
    before: &Task,
    event: &EventKind,
    next: &Task,
) -> Result<Vec<Checkpoint>, String> {
    let Some(head) = next.head.as_ref().filter(|_| next.head != before.head) else { return Ok(Vec::new()) };
    let newest = read(blobs, head).ok_or_else(|| format!("the head {} is not stored", head.id))?;
    if newest.integrity.checkpoint_hash != head.hash || newest.check_hash().is_err() {
        return Err(format!("the head {} does not have the hash that it says", head.id));
    }
    let mut added = vec![newest];
    // A control checkpoint may stand on the worker's in one turn.
    if let EventKind::CheckpointWritten { checkpoint, .. } = event
        && checkpoint.integrity.checkpoint_hash != head.hash
    {
        added.insert(0, (**checkpoint).clone());
    }
    Ok(added)
}

pub(super) fn check(
    blobs: &MemoryBlobs,
    (chain, added): (&[Digest], &[Checkpoint]),
    before: &Task,
    event: &EventKind,
    next: &Task,
) -> Option<String> {
    if before.head.is_some() && next.head.is_none() {
        return Some("the chain has lost its head".to_owned());
    }
    let mut previous = chain.last().copied();
    for (length, checkpoint) in (chain.len() as u64..).zip(added) {
        let id = &checkpoint.checkpoint_id;
        if checkpoint.integrity.previous_checkpoint_hash != previous || checkpoint.sequence != length + 1 {
            return Some(format!("the chain forks: {id} does not follow checkpoint {length}"));
        }
        if let Some(what) = check_author(checkpoint, before, event) {
            return Some(what);
        }
        let named = [
            checkpoint.workspace.base,
            checkpoint.workspace.tree,
            checkpoint.changesets.proposed.hash,
            checkpoint.evidence.index,
        ];
        if let Some(missing) = named.into_iter().find(|digest| !blobs.has(*digest)) {
            return Some(format!("{id} is in the chain and names {missing}, which is not stored"));
        }
        previous = Some(checkpoint.integrity.checkpoint_hash);
    }
    None
}

fn check_author(checkpoint: &Checkpoint, before: &Task, event: &EventKind) -> Option<String> {
    let id = &checkpoint.checkpoint_id;
    if checkpoint.author.role != Role::Worker {
        return (checkpoint.author.instance.as_str() != "orchestrator")
            .then(|| format!("{id} is a control checkpoint, and somebody else wrote it"));
    }
    let sent = matches!(event, EventKind::CheckpointWritten { checkpoint: sent, .. } if **sent == *checkpoint);
    let mine = matches!(before.state, State::Running { .. } | State::Cancelling { .. });
    if !sent || !mine || checkpoint.epoch != before.epoch {
        return Some(format!("{id} was taken from an attempt that does not hold the task"));
    }
    None
}
