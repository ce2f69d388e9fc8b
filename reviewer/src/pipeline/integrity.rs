//! Second stage: is the checkpoint what it says it is, and where it says it is?
//!
//! It checks the record's own hash, that it is the one that was asked about, and
//! its link to the last accepted checkpoint. That the blobs are there is seen
//! where they are read. A damaged record ends the review: nothing that it says
//! can be relied on.

use checkrein_shared::records::{Checkpoint, CheckpointRef, Judgement, ReviewRequest, Severity};

use super::load::Loaded;
use crate::check::{Check, Level, Raised, field};
use crate::error::{Early, Stop};

const HASH: &str = "integrity/checkpoint_hash";
const CHAIN: &str = "integrity/previous_checkpoint_hash";

/// Validates the record and its place in the chain.
pub(super) fn validate(request: &ReviewRequest, loaded: &Loaded) -> Result<Vec<Raised>, Stop> {
    let level = loaded.settings.level(Check::Integrity);
    if level == Level::Off {
        return Ok(Vec::new());
    }
    let raised: Vec<Raised> = faults(request, &loaded.checkpoint, loaded.accepted.as_ref())
        .into_iter()
        .map(|(place, claim)| {
            Raised::new(Check::Integrity, Severity::Critical, claim, vec![field(place)])
                .act("Write a new checkpoint from the last accepted one; this one can't be trusted.")
        })
        .collect();
    if raised.is_empty() || level == Level::Warn {
        return Ok(raised);
    }
    Err(Stop::Answer(Early { judgement: Judgement::Rejected, raised, reasons: Vec::new() }))
}

fn faults(
    request: &ReviewRequest,
    checkpoint: &Checkpoint,
    accepted: Option<&Checkpoint>,
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Err(error) = checkpoint.check_hash() {
        found.push((HASH, error.to_string()));
    }
    if !is(checkpoint, &request.checkpoint) || checkpoint.task_id != request.task_id {
        found.push((HASH, format!("the record is not {}, which was asked about", request.checkpoint.id)));
    }
    let chain = match (&request.accepted, accepted) {
        (Some(reference), Some(accepted)) => follows(checkpoint, reference, accepted),
        _ if checkpoint.sequence == 1 => checkpoint.check_follows(None).err().map(|e| e.to_string()),
        _ => orphan(checkpoint),
    };
    found.extend(chain.map(|claim| (CHAIN, claim)));
    found
}

fn is(checkpoint: &Checkpoint, reference: &CheckpointRef) -> bool {
    let stated = (&reference.id, reference.hash, reference.sequence);
    stated == (&checkpoint.checkpoint_id, checkpoint.integrity.checkpoint_hash, checkpoint.sequence)
}

fn orphan(checkpoint: &Checkpoint) -> Option<String> {
    let alone = checkpoint.integrity.previous_checkpoint_hash.is_none();
    alone.then(|| format!("checkpoint {} is not the first and names no predecessor", checkpoint.checkpoint_id))
}

/// How the link to the last accepted checkpoint is broken; `None` where it holds.
fn follows(checkpoint: &Checkpoint, reference: &CheckpointRef, accepted: &Checkpoint) -> Option<String> {
    if let Err(error) = accepted.check_hash() {
        return Some(format!("the last accepted checkpoint is damaged: {error}"));
    }
    if !is(accepted, reference) || accepted.task_id != checkpoint.task_id {
        return Some(format!("the last accepted checkpoint is not {}", reference.id));
    }
    match checkpoint.sequence.checked_sub(accepted.sequence) {
        Some(0) => (checkpoint != accepted).then(|| "another record stands in the place of an accepted one".to_owned()),
        Some(1) => checkpoint.check_follows(Some(reference)).err().map(|e| e.to_string()),
        Some(_) => orphan(checkpoint),
        None => Some(format!("it stands before the last accepted checkpoint {}", reference.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sample, request};

    fn first() -> Checkpoint {
        Sample::new().subject().checkpoint
    }

    fn second(previous: &Checkpoint) -> Checkpoint {
        let mut next = first();
        next.sequence = 2;
        next.checkpoint_id = next.task_id.checkpoint(2);
        next.integrity.previous_checkpoint_hash = Some(previous.integrity.checkpoint_hash);
        next.seal().unwrap()
    }

    fn reference(checkpoint: &Checkpoint) -> CheckpointRef {
        request(checkpoint).checkpoint
    }

    #[test]
    fn a_sound_chain_passes() {
        let (one, two) = (first(), second(&first()));
        assert_eq!(faults(&request(&one), &one, None), []);
        let mut asked = request(&two);
        asked.accepted = Some(reference(&one));
        assert_eq!(faults(&asked, &two, Some(&one)), []);
    }

    #[test]
    fn one_changed_byte_breaks_the_hash() {
        let mut one = first();
        one.objective.text.push('!');
        let found = faults(&request(&one), &one, None);
        assert!(found[0].1.contains("hashes to"), "{found:?}");
    }

    #[test]
    fn a_record_that_was_not_asked_about_or_does_not_follow_is_raised() {
        let (one, two) = (first(), second(&first()));
        assert!(faults(&request(&one), &two, None)[0].1.contains("asked about"));

        let mut other = first();
        other.epoch = 9;
        let other = other.seal().unwrap();
        let mut asked = request(&two);
        asked.accepted = Some(reference(&other));
        assert!(faults(&asked, &two, Some(&other))[0].1.contains("does not follow"));
        asked.accepted = Some(reference(&one));
        assert!(faults(&asked, &two, Some(&other))[0].1.contains("is not cp-"));

        let mut alone = two;
        alone.integrity.previous_checkpoint_hash = None;
        let alone = alone.seal().unwrap();
        assert!(faults(&request(&alone), &alone, None)[0].1.contains("no predecessor"));
    }
}
