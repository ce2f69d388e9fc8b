//! What the resolved policy says to a rules review, in the form in which the
//! checks use it. This is the one place of this crate that knows how policies
//! are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use checkrein_shared::records::{ConstraintRef, EvidenceKind};
use checkrein_shared::tree::RelPath;

use crate::check::{Check, Level};
use crate::globs::Globs;

/// The policy, as one review sees it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    levels: BTreeMap<Check, Level>,
    /// Verifiers by name.
    pub(crate) verifiers: BTreeMap<String, Verifier>,
    /// Those that this review names; `None` runs every one.
    pub(crate) named: Option<BTreeSet<String>>,
    /// Kinds of evidence that must be read.
    pub(crate) must_read: BTreeSet<EvidenceKind>,
    /// Paths that no change may touch.
    pub(crate) protect: Globs,
    /// The most files that a change may touch.
    pub(crate) files_max: Option<u64>,
    /// The most lines that a change may add and remove.
    pub(crate) lines_max: Option<u64>,
    /// The policy's own constraints.
    pub(crate) constraints: Vec<ConstraintRef>,
    /// Digests of the files that the policy was read from.
    pub(crate) policy_files: BTreeSet<Digest>,
    /// What counts as a secret.
    pub(crate) redaction: Redaction,
    /// Whether a verifier may not run unconfined.
    pub(crate) confinement_required: bool,
}

/// A command that the reviewer runs.
#[derive(Debug, Clone)]
pub(crate) struct Verifier {
    pub(crate) name: String,
    pub(crate) argv: Vec<String>,
    pub(crate) timeout: Duration,
    /// Whether it must not reach the network.
    pub(crate) offline: bool,
    /// Paths taken from the target.
    pub(crate) carry: Vec<RelPath>,
    /// Files taken from the base.
    pub(crate) from_base: Globs,
}

impl Settings {
    /// What the policy does with what `check` raises.
    pub(crate) fn level(&self, check: Check) -> Level {
        self.levels.get(&check).copied().unwrap_or(Level::Block)
    }
}
