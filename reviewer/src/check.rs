//! The names of the built-in checks, how a policy switches them, and what one of
//! them raises. The checks themselves are in [`crate::checks`].

use checkrein_shared::records::{Severity, SourceRef};

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A built-in check.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $($(#[$doc])* $name,)*
        }

        impl Check {
            /// Every check, in the order in which they run.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name as policies and findings write it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The check with this name.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|check| check.as_str() == text)
            }
        }
    };
}

checks! {
    /// The checkpoint's hash, its place in the chain, and the blobs that it names.
    Integrity = "integrity",
    /// What the review was asked about is still what counts.
    Currency = "currency",
    /// Evidence for every completed step.
    StepEvidence = "step_evidence",
    /// Every claim names evidence that exists.
    ClaimRefs = "claim_refs",
    /// No claim is contradicted by its own evidence.
    ClaimContradicted = "claim_contradicted",
    /// The recorded changeset is the difference of the two trees.
    ChangesetComplete = "changeset_complete",
    /// Objective, specification and constraints are those in force.
    Objective = "objective",
    /// The remaining plan can be carried out.
    Plan = "plan",
    /// The policy's verifiers pass, run by the reviewer.
    Verifiers = "verifiers",
    /// No verifier fails that passed before.
    Regression = "regression",
    /// Tests were not made weaker.
    WeakenedTests = "weakened_tests",
    /// No secrets in added lines.
    Secrets = "secrets",
    /// No bidirectional or invisible characters in added lines and file names.
    Invisible = "invisible",
    /// No change to what decides about changes.
    PolicyOrCi = "policy_or_ci",
    /// The change is small enough to be reviewed.
    Size = "size",
    /// Protected paths are untouched.
    Protected = "protected",
}

/// What a policy does with what a check raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The check does not run.
    Off,
    /// It is recorded and does not stand in the way.
    Warn,
    /// It stands in the way of an approval.
    Block,
}

/// What a check raises, before its refs are checked and before it becomes a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) check: Check,
    pub(crate) severity: Severity,
    /// What is wrong, for people. Untrusted text in it is escaped already.
    pub(crate) claim: String,
    /// Where it can be seen. The first one is its place: the same place in a later round is the same finding.
    pub(crate) refs: Vec<SourceRef>,
    /// What has to be done, as a sentence that an agent can act on.
    pub(crate) action: String,
    /// The most that the policy's level may make of it.
    pub(crate) at_most: Level,
}

impl Raised {
    pub(crate) fn new(check: Check, severity: Severity, claim: impl Into<String>, refs: Vec<SourceRef>) -> Self {
        Self { check, severity, claim: claim.into(), refs, action: String::new(), at_most: Level::Block }
    }

    /// Says what has to be done.
    pub(crate) fn act(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// Keeps it from ever blocking: a hint, not a fault.
    pub(crate) fn only_warn(mut self) -> Self {
        self.at_most = Level::Warn;
        self
    }
}

/// A place in the checkpoint record.
pub(crate) fn field(name: impl Into<String>) -> SourceRef {
    SourceRef::Checkpoint(name.into())
}

/// A file as a whole.
pub(crate) fn whole_file(path: impl ToString) -> SourceRef {
    SourceRef::File { path: path.to_string(), line: None, quote: None }
}

/// A line of a file.
pub(crate) fn line_of(path: impl ToString, line: u64) -> SourceRef {
    SourceRef::File { path: path.to_string(), line: Some(line), quote: None }
}
