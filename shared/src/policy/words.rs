//! The closed vocabularies of policy files.
//!
//! A word that is not listed here is an error when a file is read. What the
//! words mean is decided where they are used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word as it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words! {
    /// How a tool call is let through, from freely to not at all.
    ToolMode {
        /// It runs.
        Allow = "allow",
        /// It waits for a checkpoint to be reviewed.
        Gate = "gate",
        /// It waits for a person.
        Human = "human",
        /// It never runs.
        Deny = "deny",
    }

    /// What a rule has the orchestrator do.
    Action {
        /// Go on; at a gate, with a grant.
        Continue = "continue",
        /// Go on, and tell people.
        Warn = "warn",
        /// Send the work back with the required actions.
        Retry = "retry",
        /// Have the missing evidence made.
        RequestEvidence = "request_evidence",
        /// Stop until an operator resumes.
        Block = "block",
        /// Ask a person.
        Escalate = "escalate",
        /// End the task.
        Abort = "abort",
    }

    /// What happened that rules are asked about.
    RuleEvent {
        /// A review round ended.
        Round = "round",
        /// A review did not answer in time.
        Timeout = "timeout",
        /// A negative verdict came when it was no longer current.
        Late = "late",
        /// An attempt failed.
        Failed = "failed",
        /// A budget reached a threshold.
        Budget = "budget",
        /// The target, the plan or the specification drifted.
        Drift = "drift",
        /// Nobody knows whether an effect happened.
        EffectUnknown = "effect_unknown",
        /// The agent repeats itself.
        NoProgress = "no_progress",
        /// The plan lost a step or a check.
        Plan = "plan",
    }

    /// When changesets are applied.
    ApplyWhen {
        /// Once, when all steps are done.
        AtEnd = "at_end",
        /// After each step.
        PerStep = "per_step",
    }

    /// Where changesets are applied.
    ApplyTo {
        /// The files of the workspace.
        Worktree = "worktree",
        /// The task's own branch.
        Branch = "branch",
    }

    /// Whether agents and verifiers must run confined.
    Confinement {
        /// Nothing runs where confinement is not available.
        Required = "required",
        /// Confined where the system can, and the checkpoint says what was in force.
        BestEffort = "best_effort",
    }

    /// What network a verifier sees.
    Network {
        /// None.
        None = "none",
        /// All of the host's, without its loopback.
        Full = "full",
    }

    /// What happens when the last level of an escalation lets its deadline pass.
    OnTimeout {
        /// The action is refused, and the task goes on without it.
        Refuse = "refuse",
        /// The task is blocked.
        Block = "block",
        /// The task ends.
        Abort = "abort",
    }

    /// Who may not approve.
    Excluded {
        /// Whoever submitted the task.
        Author = "author",
        /// Whoever edited the work while it was taken over.
        Editor = "editor",
    }

    /// In what several reviewers of one review must differ.
    Independence {
        /// The process and its key.
        Identity = "identity",
        /// The model.
        Model = "model",
        /// The vendor of the model.
        Vendor = "vendor",
    }

    /// How much of the base must be unchanged for an approval to be inherited.
    InheritBase {
        /// All of it.
        Whole = "whole",
        /// The files that the review read or its verifiers cover.
        Relevant = "relevant",
    }

    /// Built-in sets of patterns that are cut out of records and evidence.
    RedactionPack {
        /// Keys of providers of models and clouds.
        ApiKeys = "api_keys",
        /// Access tokens, such as those of code hosts and chats, and bearer tokens.
        Tokens = "tokens",
        /// Private keys in PEM form.
        PrivateKeys = "private_keys",
        /// User and password within a URL.
        ConnectionStrings = "connection_strings",
    }

    /// What a failed check does.
    CheckMode {
        /// The check does not run.
        Off = "off",
        /// Its findings are shown; they do not reject.
        Warn = "warn",
        /// Its findings reject.
        Block = "block",
    }

    /// The checks that a `rules` reviewer has built in.
    CheckName {
        /// The checkpoint's hashes and chain are sound.
        Integrity = "integrity",
        /// The checkpoint is the one that the task now stands at.
        Currency = "currency",
        /// Every completed step has evidence.
        StepEvidence = "step_evidence",
        /// Every claim names evidence that exists.
        ClaimRefs = "claim_refs",
        /// No claim is contradicted by its own evidence.
        ClaimContradicted = "claim_contradicted",
        /// The changeset lists everything that changed.
        ChangesetComplete = "changeset_complete",
        /// Objective and specification are unchanged, or amended by a person.
        Objective = "objective",
        /// The remaining plan is still valid.
        Plan = "plan",
        /// The verifiers pass.
        Verifiers = "verifiers",
        /// Nothing fails that passed at the last accepted checkpoint.
        Regression = "regression",
        /// No test was removed, skipped or loosened.
        WeakenedTests = "weakened_tests",
        /// The difference holds no secret.
        Secrets = "secrets",
        /// The difference holds no invisible or direction-changing characters.
        Invisible = "invisible",
        /// Neither the policy nor files of the build pipeline were touched.
        PolicyOrCi = "policy_or_ci",
        /// The change is small enough to be reviewed.
        Size = "size",
        /// No protected path was touched.
        Protected = "protected",
    }
}
