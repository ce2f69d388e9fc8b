//! What records refer to: every place in every kind of record that names a blob.
//!
//! Two nets. The first knows the records and says what each digest must lead to;
//! what it names has to be there. The second takes every text that looks like a
//! digest, so that a place which the first does not know costs a little space and
//! never a blob.

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::Settled;
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, EvidenceIndex, EvidenceKind, Verdict};
use checkrein_shared::signing::Envelope;
use checkrein_shared::tree::node;
use serde::Deserialize as _;
use serde_json::Value;

use crate::lifecycle::{EventKind, Task};
use crate::store::Record;

/// What a blob is, by what refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Checkpoint,
    Tree,
    /// The content of a file.
    File,
    Index,
    /// An artifact that is a record, which may name others.
    Artifact,
    /// An artifact whose bytes say nothing.
    Evidence,
    Changeset,
    Verdict,
    RunState,
    /// A specification or a policy.
    Terms,
    /// Only something that looks like a digest refers to it.
    Unknown,
}

impl Kind {
    /// As reports name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoints",
            Self::Tree => "trees",
            Self::File => "files",
            Self::Index | Self::Artifact | Self::Evidence | Self::Changeset => "evidence",
            Self::Verdict => "verdicts",
            Self::RunState => "run states",
            Self::Terms => "tasks and policies",
            Self::Unknown => "other",
        }
    }

    /// Whether it has to be read to know what it refers to.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Self::Checkpoint | Self::Tree | Self::Index | Self::Artifact | Self::Verdict | Self::Unknown => true,
            Self::File | Self::Evidence | Self::Changeset | Self::RunState | Self::Terms => false,
        }
    }
}

/// What something refers to.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    /// What must be there.
    pub(crate) sure: Vec<(Kind, Digest)>,
    /// What may be a reference.
    pub(crate) maybe: Vec<Digest>,
}

impl Refs {
    fn add(&mut self, kind: Kind, digests: impl IntoIterator<Item = Digest>) {
        self.sure.extend(digests.into_iter().map(|digest| (kind, digest)));
    }
}

/// The text with which digests begin.
const PREFIX: &[u8] = b"sha256:";

/// Everything in a text that looks like a digest.
fn digests_in(text: &[u8], found: &mut Vec<Digest>) {
    let mut rest = text;
    while let Some(at) = rest.windows(PREFIX.len()).position(|bytes| bytes == PREFIX) {
        rest = &rest[at..];
        let end = PREFIX.len() + 64;
        let digest: Option<Digest> =
            rest.get(..end).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|t| t.parse().ok());
        found.extend(digest);
        rest = &rest[if digest.is_some() { end } else { PREFIX.len() }..];
    }
}

fn digests_of(value: &Value, found: &mut Vec<Digest>) {
    match value {
        Value::String(text) => digests_in(text.as_bytes(), found),
        Value::Array(items) => items.iter().for_each(|item| digests_of(item, found)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            digests_in(key.as_bytes(), found);
            digests_of(item, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a task's record in the journal refers to, with the task as it was then.
pub(crate) fn of_record(record: &Record, task: &Task) -> Refs {
    let mut refs = Refs::default();
    of_task(task, &mut refs);
    match EventKind::deserialize(&record.event) {
        Ok(EventKind::CheckpointWritten { record, .. }) => refs.add(Kind::Checkpoint, [record]),
        Ok(EventKind::VerdictPublished { envelope, .. }) => refs.add(Kind::Verdict, [envelope]),
        Ok(EventKind::HandedBack { tree, .. }) => refs.add(Kind::Tree, [tree]),
        Ok(EventKind::EffectSettled { settlement }) => {
            if let Settled::Done(result) = &settlement.outcome {
                refs.add(Kind::Evidence, result.output);
                refs.add(Kind::Tree, result.tree);
            }
        }
        // The others name nothing that the task or the second net does not.
        Ok(_) | Err(_) => {}
    }
    for value in [&record.event, &record.decision, &record.state] {
        digests_of(value, &mut refs.maybe);
    }
    record.messages.iter().for_each(|message| digests_of(&message.body, &mut refs.maybe));
    record.timers.iter().for_each(|timer| {
        if let crate::store::TimerChange::Set { kind, .. } = timer {
            digests_of(kind, &mut refs.maybe);
        }
    });
    record.rows.iter().for_each(|row| {
        if let crate::store::RowChange::Put { key, value, .. } = row {
            digests_in(key.as_bytes(), &mut refs.maybe);
            digests_of(value, &mut refs.maybe);
        }
    });
    refs
}

fn of_task(task: &Task, refs: &mut Refs) {
    refs.add(Kind::Terms, [task.spec.record, task.policy.digest]);
    let checkpoints = [task.head.as_ref(), task.accepted.as_ref(), task.subject.as_ref().map(|s| &s.checkpoint)];
    refs.add(Kind::Checkpoint, checkpoints.into_iter().flatten().map(|checkpoint| checkpoint.record));
    refs.add(Kind::Tree, task.tree);
    refs.add(Kind::Index, task.evidence_index);
    refs.add(Kind::RunState, task.save_point.iter().map(|saved| saved.run_state.digest));
    refs.add(Kind::Tree, task.save_point.iter().map(|saved| saved.tree));
    refs.add(Kind::Tree, task.save_point.iter().filter_map(|saved| saved.began).map(|began| began.tree));
    refs.add(Kind::Verdict, task.verdicts.iter().filter_map(|verdict| verdict.envelope));
    refs.add(Kind::Changeset, task.subject.iter().map(|subject| subject.changeset.hash));
    refs.add(Kind::Changeset, task.grants.iter().map(|grant| grant.changeset.hash));
    refs.add(Kind::Changeset, task.applied.iter().map(|changeset| changeset.hash));
}

/// What a blob refers to.
pub(crate) fn of_blob(kind: Kind, digest: Digest, bytes: &[u8]) -> Result<Refs, String> {
    let mut refs = Refs::default();
    match kind {
        Kind::Checkpoint => of_checkpoint(&parse("checkpoint", bytes)?, &mut refs),
        Kind::Tree => {
            let links = node::links(digest, bytes).map_err(|error| with_causes(&error))?;
            refs.add(Kind::Tree, links.directories);
            refs.add(Kind::File, links.contents);
            return Ok(refs);
        }
        Kind::Index => of_index(&parse("evidence index", bytes)?, &mut refs),
        Kind::Verdict => {
            let envelope: Envelope = parse("envelope", bytes)?;
            let payload = envelope.payload_unverified().map_err(|error| with_causes(&error))?;
            let verdict: Verdict = parse("verdict", &payload)?;
            of_index(&verdict.evidence, &mut refs);
            digests_in(&payload, &mut refs.maybe);
        }
        Kind::Artifact | Kind::Unknown => {}
        Kind::File | Kind::Evidence | Kind::Changeset | Kind::RunState | Kind::Terms => return Ok(refs),
    }
    // What is no record of ours refers to nothing, whatever it may hold.
    if matches!(bytes.first(), Some(b'{' | b'[')) {
        digests_in(bytes, &mut refs.maybe);
    }
    Ok(refs)
}

fn parse<T: serde::de::DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, String> {
    json::parse_as(what, bytes).map_err(|error| with_causes(&error))
}

fn of_checkpoint(checkpoint: &Checkpoint, refs: &mut Refs) {
    refs.add(Kind::Terms, [checkpoint.policy_digest]);
    refs.add(Kind::Tree, [checkpoint.workspace.base, checkpoint.workspace.tree]);
    refs.add(Kind::Changeset, [checkpoint.changesets.proposed.hash]);
    refs.add(Kind::Changeset, checkpoint.changesets.applied.iter().map(|changeset| changeset.hash));
    refs.add(Kind::Index, [checkpoint.evidence.index]);
    refs.add(Kind::RunState, checkpoint.resume.run_state);
}

fn of_index(index: &EvidenceIndex, refs: &mut Refs) {
    refs.add(Kind::Index, index.previous);
    for (reference, evidence) in &index.entries {
        match reference.kind() {
            // A file of the tree: large and sealed ones are named and not stored.
            EvidenceKind::File => refs.maybe.push(evidence.digest),
            _ if evidence.media_type.contains("json") => refs.add(Kind::Artifact, [evidence.digest]),
            _ => refs.add(Kind::Evidence, [evidence.digest]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_found_wherever_they_stand_in_a_text() {
        let (one, two) = (Digest::of("1"), Digest::of("2"));
        let text = format!("sha256:sha256:{one},x{two}{two} sha256:{}", "0".repeat(63));
        let mut found = Vec::new();
        digests_in(text.as_bytes(), &mut found);
        // `sha256:` followed by `sha256:..` is no digest, and must not hide the one that begins inside it.
        assert_eq!(found, [one, two, two]);
        digests_of(&serde_json::json!({ one.to_string(): [{ "x": two }] }), &mut found);
        assert_eq!(found[3..], [one, two]);
    }
}
