//! What an agent says about its step, kept as evidence and checked against it.
//!
//! The file is read by [`crate::results`] and judged by [`crate::claims`]; this
//! module brings both together with index and tree.

use checkrein_shared::records::{EvidenceKind, EvidenceRef};
use checkrein_shared::time::Timestamp;

use super::step::of_attempt;
use super::step_end::Left;
use crate::claims::{self, Grounds, Said};
use crate::desk::{Desk, JobError};
use crate::propose;
use crate::recorder::Recorder;
use crate::results::{self, Found};

/// Reads the agent's result file and checks its claims against index and tree.
pub(super) async fn read(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>) -> Result<Said, JobError> {
    let now = Timestamp::now();
    let found = results::read(&left.room.result());
    let source = of_attempt(EvidenceKind::Result, &desk.job, &left.step.id);
    if let Found::Result(_, bytes) | Found::Refused(Some(bytes), _) = &found {
        recorder.add(source.clone(), "application/json", bytes, 0, now).await?;
    }
    let file_of = |reference: &EvidenceRef| propose::file_of(reference, &left.tree.manifest);
    let said = {
        let recorder: &Recorder = recorder;
        let exists = |r: &EvidenceRef| match r.kind() {
            EvidenceKind::File => file_of(r).is_some(),
            _ => recorder.get(r).is_some(),
        };
        let redact = |text: &str| recorder.redact(text);
        let grounds = Grounds { log: &left.log.0, exists: &exists, redact: &redact, epoch: desk.job.epoch };
        match found {
            Found::Nothing => Said::default(),
            Found::Result(file, _) => claims::judge(&file, &source, &grounds),
            Found::Refused(bytes, why) => claims::refused(&why, bytes.as_ref().map(|_| &source), &grounds),
        }
    };
    for reference in said.claims.iter().flat_map(|claim| &claim.refs) {
        if let Some((digest, size)) = file_of(reference) {
            recorder.add_stored(reference.clone(), "application/octet-stream", digest, size, now);
        }
    }
    Ok(said)
}
