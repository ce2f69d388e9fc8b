//! Turns a finished run into evidence: a redacted log and a record of the run,
//! both in the blob store, both made by the reviewer.

use std::collections::BTreeMap;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::ids::{InstanceId, ReviewId};
use checkrein_shared::json;
use checkrein_shared::records::{Evidence, EvidenceIndex, EvidenceKind, EvidenceRef, Producer, Role, TestRun};
use checkrein_shared::time::Timestamp;

use super::Attempt;

/// How much of the end of an output is kept for required actions.
const TAIL_BYTES: usize = 8 << 10;

/// Who makes evidence, for which review, and when.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    pub(crate) instance: InstanceId,
    pub(crate) review: ReviewId,
    pub(crate) now: Timestamp,
}

/// An output as it will be stored.
#[derive(Debug)]
pub(super) struct Log {
    /// Facts about the run, then the redacted output.
    pub(super) text: Vec<u8>,
    /// The redacted output alone.
    pub(super) output: Vec<u8>,
    pub(super) redactions: BTreeMap<String, u64>,
    pub(super) dropped_bytes: u64,
}

/// The place of a verifier's evidence: `verifier/<name>/` and what tells its runs apart.
pub(crate) const PREFIX: &str = "verifier/";

impl Maker {
    fn name(&self, kind: EvidenceKind, verifier: &str, which: &str) -> EvidenceRef {
        let name = format!("{PREFIX}{verifier}/{}/{which}", self.review);
        EvidenceRef::new(kind, &name).expect("names of verifiers and reviews are short and hold no control characters")
    }

    /// The ref of the log of run `which`.
    pub(super) fn log_ref(&self, verifier: &str, which: &str) -> EvidenceRef {
        self.name(EvidenceKind::Log, verifier, which)
    }

    fn evidence(&self, digest: checkrein_shared::digest::Digest, size: usize, media_type: &str) -> Evidence {
        Evidence {
            digest,
            size: size as u64,
            media_type: media_type.to_owned(),
            produced_by: Producer { role: Role::Reviewer, instance: self.instance.clone() },
            step: None,
            created_at: self.now,
            redactions: BTreeMap::new(),
            dropped_bytes: 0,
        }
    }

    /// Stores a log and the record of its run.
    pub(super) async fn store(
        &self,
        blobs: &dyn Blobs,
        verifier: &str,
        which: &str,
        run: TestRun,
        log: Log,
    ) -> Result<(Attempt, EvidenceIndex), blob::Error> {
        let record = json::canonical(&run).expect("exit codes and durations are integers below 2^53");
        let sizes = (log.text.len(), record.len());
        let tail = log.output.len().saturating_sub(TAIL_BYTES);
        let tail = String::from_utf8_lossy(&log.output[tail..]).into_owned();
        let digests = blobs.put_all(vec![log.text, record]).await?;
        let written = Evidence {
            redactions: log.redactions,
            dropped_bytes: log.dropped_bytes,
            ..self.evidence(digests[0], sizes.0, "text/plain")
        };
        let test = self.name(EvidenceKind::Test, verifier, which);
        let entries = BTreeMap::from([
            (run.log.clone(), written),
            (test.clone(), self.evidence(digests[1], sizes.1, "application/json")),
        ]);
        Ok((Attempt { run, test, tail }, EvidenceIndex { previous: None, entries }))
    }
}
