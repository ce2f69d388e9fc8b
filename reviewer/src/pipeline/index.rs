//! Fifth stage: what evidence there is. Indexes are followed back to the first
//! one; each artifact must be in the store with the size that its index says.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{Evidence, EvidenceIndex, EvidenceKind, EvidenceRef, Severity};

use super::load::{Loaded, record};
use crate::check::{Check, Raised, field};
use crate::error::{Error, Stop};
use crate::quote;

/// The longest chain of indexes that is followed.
const INDEXES_MAX: usize = 2_000;

/// The most artifacts that one task may have.
const ENTRIES_MAX: usize = 200_000;

/// What the indexes say.
#[derive(Default)]
pub(super) struct Inspected {
    pub(super) evidence: BTreeMap<EvidenceRef, Evidence>,
    /// What is new since the last accepted checkpoint.
    pub(super) fresh: BTreeSet<EvidenceRef>,
    /// The indexes themselves.
    pub(super) indexes: BTreeSet<Digest>,
    /// What should be there and is not.
    pub(super) missing: Vec<String>,
    pub(super) raised: Vec<Raised>,
}

/// Follows the indexes.
pub(super) async fn inspect(blobs: &dyn Blobs, loaded: &Loaded) -> Result<Inspected, Stop> {
    let known = loaded.accepted.as_ref().map(|accepted| accepted.evidence.index);
    let mut found = Inspected::default();
    let mut renamed = Vec::new();
    let mut is_fresh = true;
    let mut next = Some(loaded.checkpoint.evidence.index);
    while let Some(digest) = next {
        is_fresh &= Some(digest) != known;
        found.indexes.insert(digest);
        if found.indexes.len() > INDEXES_MAX {
            return Err(Stop::unclear(format!("the evidence has more than {INDEXES_MAX} indexes")));
        }
        let index: EvidenceIndex = record(blobs, digest, "an evidence index").await?;
        next = index.previous;
        renamed.extend(add(&mut found, index, is_fresh));
        if found.evidence.len() > ENTRIES_MAX {
            return Err(Stop::unclear(format!("the task has more than {ENTRIES_MAX} artifacts")));
        }
    }
    if !renamed.is_empty() {
        let refs = quote::list(renamed.iter().map(|r| quote::line(r.as_str())));
        let claim = format!("refs name other bytes than they did before: {refs}");
        found.raised.push(
            Raised::new(Check::Integrity, Severity::High, claim, vec![field("evidence/index")])
                .act("Give new evidence new refs; what was recorded once stays as it was.")
                // The newest bytes count, and a resumed attempt may honestly write them again.
                .only_warn(),
        );
    }
    found.missing = absent(blobs, &found.evidence).await?;
    Ok(found)
}

/// Adds an older index. Returns the refs that a newer one uses for something else.
fn add(found: &mut Inspected, index: EvidenceIndex, is_fresh: bool) -> Vec<EvidenceRef> {
    let mut renamed = Vec::new();
    for (reference, evidence) in index.entries {
        match found.evidence.get(&reference) {
            // `file:` names a file as it is now; it is other bytes at each checkpoint that changes it.
            Some(newer) if newer.digest != evidence.digest && reference.kind() != EvidenceKind::File => {
                renamed.push(reference);
            }
            Some(_) => {}
            None => {
                if is_fresh {
                    found.fresh.insert(reference.clone());
                }
                found.evidence.insert(reference, evidence);
            }
        }
    }
    renamed
}

async fn absent(blobs: &dyn Blobs, evidence: &BTreeMap<EvidenceRef, Evidence>) -> Result<Vec<String>, Stop> {
    let mut missing = Vec::new();
    for (reference, evidence) in evidence {
        let failed = |source| Stop::Again(Error::Blobs { doing: "looking for evidence".to_owned(), source });
        let size = blobs.size(evidence.digest).await.map_err(failed)?;
        let shown = quote::line(reference.as_str());
        match size {
            None => missing.push(format!("evidence `{shown}` is not in the blob store")),
            Some(size) if size != evidence.size => {
                missing.push(format!("evidence `{shown}` has {size} bytes instead of {}", evidence.size));
            }
            Some(_) => {}
        }
    }
    Ok(missing)
}
