//! What the resolved policy says to a rules review, in the form in which the
//! checks use it. This is the one place of this crate that knows how policies
//! are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::policy::{self, Checks, Confinement, Network, ResolvedPolicy};
use checkrein_shared::records::{ConstraintRef, EvidenceKind};
use checkrein_shared::tree::RelPath;

use crate::check::{Check, Level};
use crate::globs::Globs;
use crate::redaction::Redaction;

/// The policy, as one review sees it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) checks: Checks,
    /// Verifiers by name.
    pub(crate) verifiers: BTreeMap<String, Verifier>,
    /// Those that this review runs.
    pub(crate) named: BTreeSet<String>,
    /// Kinds of evidence that must be read.
    pub(crate) must_read: BTreeSet<EvidenceKind>,
    /// Paths that no change may touch.
    pub(crate) protect: Globs,
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
    /// Reads a pinned policy for the review of this name.
    pub(crate) fn from_policy(bytes: &[u8], review: &str) -> Result<Self, String> {
        let policy = ResolvedPolicy::from_bytes(bytes).map_err(|e| with_causes(&e))?;
        let review = policy.review(review).ok_or_else(|| format!("it has no review `{review}`"))?;
        let verifiers = policy.verifiers.iter().map(|(name, written)| {
            let verifier = verifier(name, written, &policy.workspace.carry)?;
            Ok((name.clone(), verifier))
        });
        Ok(Self {
            verifiers: verifiers.collect::<Result<_, String>>()?,
            named: review.verifiers.iter().cloned().collect(),
            must_read: review.must_read.iter().copied().collect(),
            protect: globs(&policy.workspace.protect)?,
            constraints: policy.constraints.iter().map(constraint).collect(),
            policy_files: policy.sources.iter().map(|source| source.digest).collect(),
            redaction: Redaction::from_policy(&policy.redaction)?,
            confinement_required: policy.workspace.confinement == Confinement::Required,
            checks: policy.checks,
        })
    }

    /// What the policy does with what `check` raises.
    pub(crate) fn level(&self, check: Check) -> Level {
        self.checks.mode(check)
    }

    /// The most files and the most lines that a change may touch.
    pub(crate) fn size_limits(&self) -> (u64, u64) {
        (u64::from(self.checks.size.files), u64::from(self.checks.size.lines))
    }
}

fn globs(patterns: &[String]) -> Result<Globs, String> {
    Globs::new(patterns).map_err(|e| e.to_string())
}

fn constraint(written: &policy::Constraint) -> ConstraintRef {
    ConstraintRef { id: written.id.clone(), version: u64::from(written.version), hash: written.hash }
}

/// What the workspace carries into scratches, its verifiers need too.
fn verifier(name: &str, written: &policy::Verifier, workspace_carry: &[String]) -> Result<Verifier, String> {
    let carry: BTreeSet<&String> = workspace_carry.iter().chain(&written.carry).collect();
    let carry =
        carry.into_iter().map(|path| RelPath::from_bytes(path.trim_end_matches('/')).map_err(|e| e.to_string()));
    Ok(Verifier {
        name: name.to_owned(),
        argv: written.argv().to_vec(),
        timeout: written.timeout.to_duration(),
        offline: written.network == Network::None,
        carry: carry.collect::<Result<_, _>>()?,
        from_base: globs(&written.from_base)?,
    })
}

#[cfg(test)]
impl Settings {
    /// Every check blocks, nothing is named.
    pub(crate) fn everything_blocks() -> Self {
        Self {
            checks: Checks { modes: BTreeMap::new(), size: policy::SizeLimit { files: 10_000, lines: 1_000_000 } },
            verifiers: BTreeMap::new(),
            named: BTreeSet::new(),
            must_read: BTreeSet::new(),
            protect: Globs::known(&[]),
            constraints: Vec::new(),
            policy_files: BTreeSet::new(),
            redaction: Redaction::built_in(),
            confinement_required: false,
        }
    }

    pub(crate) fn set(&mut self, check: Check, level: Level) {
        self.checks.modes.insert(check, level);
    }

    pub(crate) fn set_size(&mut self, files: u32, lines: u32) {
        self.checks.size = policy::SizeLimit { files, lines };
    }
}
