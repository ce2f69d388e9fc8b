//! Keeps only findings that can be seen where they are said to be.
//!
//! What is dropped is named, and what would have blocked leaves the question
//! open: a verdict does not become cleaner by a citation that does not hold.

use checkrein_shared::records::{EvidenceIndex, FindingStatus, SourceRef};

use crate::citations::Sources;
use crate::error::{Error, Stop};
use crate::findings::Settled;
use crate::ledger::Ledger;
use crate::subject::Subject;

/// A finding whose citations do not hold.
pub(super) struct Invalid {
    pub(super) why: String,
    pub(super) blocks: bool,
}

/// Keeps what can be seen where it is said to be; the gravest first.
pub(super) async fn check(
    ledger: &Ledger<'_>,
    subject: &Subject,
    own: &EvidenceIndex,
    settled: Vec<Settled>,
) -> Result<(Vec<Settled>, Vec<Invalid>), Stop> {
    let evidence = subject.evidence.keys().chain(own.entries.keys()).collect();
    let sources = Sources::new(ledger, evidence, &subject.tree, &subject.base, &subject.checkpoint);
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    for mut one in settled {
        let mut kept: Vec<SourceRef> = Vec::new();
        let mut faults: Vec<String> = Vec::new();
        for source in std::mem::take(&mut one.finding.source_refs) {
            let fault = sources
                .fault(&source)
                .await
                .map_err(|source| Stop::Again(Error::Blobs { doing: "checking a citation".to_owned(), source }))?;
            match fault {
                None => kept.push(source),
                Some(why) => faults.push(why),
            }
        }
        if kept.is_empty() {
            let why = format!("{} ({}): {}", one.finding.check, one.finding.id, faults.join("; "));
            invalid.push(Invalid { why, blocks: one.blocks() });
            continue;
        }
        one.finding.source_refs = kept;
        valid.push(one);
    }
    valid.sort_by_key(|s| (s.finding.status == FindingStatus::Fixed, std::cmp::Reverse((s.level, s.finding.severity))));
    Ok((valid, invalid))
}
