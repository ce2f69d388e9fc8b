//! Verifiers: commands that the reviewer itself runs on what is to be judged.
//!
//! Each runs in a fresh copy of the checkpoint's tree, with the base's version
//! of the files that it names, confined, with an empty environment but for a few
//! variables. Its output becomes evidence that the reviewer made. Whether a
//! result is good enough is not decided here.

mod cache;
mod copy;
mod evidence;
mod from_base;
mod network;
mod once;
mod run;

use std::collections::BTreeSet;

use checkrein_shared::blob;
use checkrein_shared::causes::with_causes;
use checkrein_shared::records::{EvidenceIndex, EvidenceRef, TestRun, VerifierOutcome};
use checkrein_shared::tree::{RelPath, materialise};

pub(crate) use cache::Cache;
pub(crate) use copy::remove;
pub(crate) use evidence::{Maker, PREFIX};
pub(crate) use network::Isolation;
pub(crate) use run::{Job, Trees, Workshop, run_verifier};

/// Why a verifier has no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It can't run here; the review goes on without it, and can't approve.
    Here(String),
    /// The blob store does not answer; the review has to be done again.
    Blobs(blob::Error),
    /// The reviewer is being shut down.
    Interrupted,
}

impl From<blob::Error> for Trouble {
    fn from(error: blob::Error) -> Self {
        Self::Blobs(error)
    }
}

impl From<materialise::Error> for Trouble {
    fn from(error: materialise::Error) -> Self {
        match error {
            materialise::Error::Blob { source: source @ blob::Error::Io { .. }, .. } => Self::Blobs(source),
            other => Self::Here(with_causes(&other)),
        }
    }
}

/// What one verifier did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifierRun {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// Its runs on the checkpoint's tree: one where it passed, two where the first failed.
    pub(crate) attempts: Vec<Attempt>,
    /// How it ended on what was there before; asked only where it fails now.
    pub(crate) baseline: Option<Baseline>,
    /// Files that were altered or deleted and that it saw as they are at the base.
    pub(crate) restored: BTreeSet<RelPath>,
    /// Why it could not be run, where it could not.
    pub(crate) problem: Option<String>,
    /// What it left as evidence.
    pub(crate) evidence: EvidenceIndex,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) run: TestRun,
    /// The ref of `run` itself.
    pub(crate) test: EvidenceRef,
    /// The end of its redacted output.
    pub(crate) tail: String,
}

/// How a verifier ended on what was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Baseline {
    /// `base` or `last accepted checkpoint`.
    pub(crate) at: &'static str,
    pub(crate) passed: bool,
    pub(crate) test: EvidenceRef,
}

impl VerifierRun {
    /// Whether it passed each time that it ran.
    pub(crate) fn ok(&self) -> bool {
        self.problem.is_none() && !self.attempts.is_empty() && self.attempts.iter().all(|a| a.run.passed())
    }

    /// Whether two runs on the same tree differed.
    pub(crate) fn is_flaky(&self) -> bool {
        self.attempts.iter().any(|a| a.run.passed()) && self.attempts.iter().any(|a| !a.run.passed())
    }

    /// For the verdict; `None` where it never ran.
    pub(crate) fn outcome(&self) -> Option<VerifierOutcome> {
        let last = self.attempts.last()?;
        Some(VerifierOutcome {
            name: self.name.clone(),
            ok: self.ok(),
            exit: last.run.exit_code,
            flaky: self.is_flaky(),
            run: last.test.clone(),
        })
    }
}
