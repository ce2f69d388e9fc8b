//! Everything that the checks look at, loaded and held in memory.
//!
//! A subject is complete: what could not be loaded ended the review before. The
//! checks read it and nothing else, so that the same subject always gives the
//! same findings.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::digest::Digest;
use checkrein_shared::records::{Checkpoint, Evidence, EvidenceRef, Finding, Plan, SourceRef, TaskSpec, TestRun};
use checkrein_shared::tree::{Changeset, Manifest, RelPath};

use crate::delta::Delta;
use crate::settings::Settings;
use crate::verifiers::VerifierRun;

/// The input of the checks.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) checkpoint: Checkpoint,
    /// The tree of the last accepted checkpoint.
    pub(crate) accepted_tree: Option<Manifest>,
    /// The specification in force.
    pub(crate) spec: TaskSpec,
    pub(crate) settings: Settings,
    /// Findings that were open before, of this review and of others.
    pub(crate) open: Vec<Finding>,
    /// Every ref of the task, through all indexes.
    pub(crate) evidence: BTreeMap<EvidenceRef, Evidence>,
    /// The test runs among them that could be read.
    pub(crate) tests: BTreeMap<EvidenceRef, TestRun>,
    pub(crate) base: Manifest,
    pub(crate) tree: Manifest,
    /// The difference of base and tree as this reviewer computes it.
    pub(crate) changeset: Changeset,
    /// The digest of the changeset record that the evidence holds, where it does.
    pub(crate) recorded: Option<Digest>,
    /// Paths of changesets that reached the target before.
    pub(crate) applied: BTreeSet<RelPath>,
    /// Paths whose entry is the one that was accepted.
    pub(crate) accepted_paths: BTreeSet<RelPath>,
    /// Line by line, in the order of paths.
    pub(crate) deltas: Vec<Delta>,
    /// The plan that the checkpoint names; `None` where it could not be found.
    pub(crate) plan: Option<Plan>,
    /// What the verifiers did.
    pub(crate) runs: Vec<VerifierRun>,
}

impl Subject {
    /// Whether a claim's ref leads anywhere: into the index, or to a file of the tree or the base.
    pub(crate) fn resolves(&self, reference: &EvidenceRef) -> bool {
        self.evidence.contains_key(reference) || self.file_of(reference).is_some_and(|path| self.has_file(&path))
    }

    /// The path that a `file:` ref names.
    pub(crate) fn file_of(&self, reference: &EvidenceRef) -> Option<RelPath> {
        let is_file = reference.kind() == checkrein_shared::records::EvidenceKind::File;
        is_file.then(|| reference.name().parse().ok()).flatten()
    }

    /// Whether tree or base has a file at `path`.
    pub(crate) fn has_file(&self, path: &RelPath) -> bool {
        self.tree.get(path).is_some() || self.base.get(path).is_some()
    }

    /// A ref to a changed file that certainly resolves.
    pub(crate) fn at(&self, path: &RelPath) -> SourceRef {
        crate::check::whole_file(path)
    }
}
