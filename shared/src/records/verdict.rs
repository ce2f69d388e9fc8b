//! The verdict: a reviewer's structured judgement, bound to hashes.
//!
//! It travels in a signed envelope (see [`crate::signing`]). A verdict changes
//! nothing by itself: the orchestrator decides by the policy what follows.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::binding::Bindings;
use super::evidence::{EvidenceIndex, EvidenceRef};
use super::scale::{Confidence, Risk, Severity};
use crate::digest::Digest;
use crate::ids::{CheckpointId, FindingId, InstanceId, ReviewId};
use crate::time::Timestamp;

/// What a reviewer concludes. Expired, withdrawn and failed reviews have no verdict at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Nothing stands against it.
    Approved,
    /// It must be changed.
    ChangesRequired,
    /// It must not be used.
    Rejected,
    /// The reviewer could not tell.
    Inconclusive,
}

impl Judgement {
    /// The name as written in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::ChangesRequired => "changes_required",
            Self::Rejected => "rejected",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Whether it is a veto: changes required, or rejected.
    pub fn is_negative(self) -> bool {
        matches!(self, Self::ChangesRequired | Self::Rejected)
    }
}

/// Where a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// Found for the first time.
    New,
    /// Still there.
    Open,
    /// No longer there, with refs into newer bytes.
    Fixed,
    /// It was fixed, and is back.
    Regressed,
}

impl FindingStatus {
    /// The name as written in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Fixed => "fixed",
            Self::Regressed => "regressed",
        }
    }
}

/// One thing that a reviewer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Its name: the task's, where it was open before; else one that the reviewer derives from check and place.
    pub id: FindingId,
    /// Which check found it, such as `verifiers` or `weakened_tests`.
    pub check: String,
    /// How grave it is.
    pub severity: Severity,
    /// What is wrong, for people.
    pub claim: String,
    /// Where it can be seen; a finding without a valid ref neither blocks nor approves.
    pub source_refs: Vec<SourceRef>,
    /// Where it stands.
    pub status: FindingStatus,
}

/// A place that a finding points at; checked by machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceRef {
    /// An artifact in the evidence index.
    Evidence(EvidenceRef),
    /// A place in a file of the checkpoint's tree or base.
    File {
        /// The path, as manifests write it.
        path: String,
        /// The first line, from 1.
        line: Option<u64>,
        /// The text that stands there.
        quote: Option<String>,
    },
    /// A field of the checkpoint, such as `open_issues/issue-3`.
    Checkpoint(String),
}

/// Who judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reviewer {
    /// The kind of reviewer.
    pub kind: ReviewerType,
    /// The model, where there is one.
    pub model: Option<String>,
    /// The process that signed.
    pub identity: InstanceId,
}

/// The kinds of reviewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewerType {
    /// Deterministic checks and verifiers.
    Rules,
    /// A model with tools to fetch evidence.
    Model,
    /// An external program.
    Command,
    /// A person.
    Human,
}

/// What a reviewer read of what it had to read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Digests that were fetched, as the blob service saw them.
    pub fetched: BTreeSet<Digest>,
    /// Artifacts that had to be read.
    pub required: BTreeSet<Digest>,
    /// The share of `required` in `fetched`, in per cent, rounded down; 100 where nothing was required.
    pub percent: u64,
}

impl Coverage {
    /// Computes the share.
    pub fn new(fetched: BTreeSet<Digest>, required: BTreeSet<Digest>) -> Self {
        let read = required.intersection(&fetched).count() as u64;
        let percent = if required.is_empty() { 100 } else { read * 100 / required.len() as u64 };
        Self { fetched, required, percent }
    }
}

/// The record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The version of this record; 1.
    pub format: u32,
    /// The review that it answers.
    pub review_id: ReviewId,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// Its hash.
    pub checkpoint_hash: Digest,
    /// What the judgement is bound to.
    pub bindings: Bindings,
    /// The judgement.
    pub verdict: Judgement,
    /// The risk as the reviewer sees it.
    pub risk: Risk,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Findings that were dropped because their refs could not be checked, with the reason.
    pub invalid_findings: Vec<String>,
    /// Evidence that should be there and is not.
    pub missing_evidence: Vec<String>,
    /// What has to be done.
    pub required_actions: Vec<String>,
    /// How sure the reviewer is.
    pub confidence: Confidence,
    /// What was read.
    pub coverage: Coverage,
    /// Evidence that the reviewer made itself, such as its own test runs.
    pub evidence: EvidenceIndex,
    /// Outcome of each verifier that ran, by name.
    pub verifiers: Vec<VerifierOutcome>,
    /// Who judged.
    pub reviewer: Reviewer,
    /// The round.
    pub round: u32,
    /// When.
    pub created_at: Timestamp,
}

/// What one verifier did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifierOutcome {
    /// Its name in the policy.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Its exit code; `None` where a signal or the time limit ended it.
    pub exit: Option<i64>,
    /// Whether two runs on one tree differed.
    pub flaky: bool,
    /// The `test:` evidence.
    pub run: EvidenceRef,
}
