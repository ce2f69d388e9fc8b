//! Resolved: the smaller sections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::file::PatternFile;
use crate::policy::words::{ApplyTo, ApplyWhen, CheckMode, CheckName, Confinement, InheritBase, RedactionPack};
use crate::time::Span;

parts! {
    /// How the workspace is handled.
    Workspace {
        /// Globs of paths whose change is always shown.
        protect: Vec<String>,
        /// Paths taken from the target at base, read-only, into every scratch.
        carry: Vec<String>,
        /// When changesets are applied.
        apply: ApplyWhen,
        /// Where they are applied.
        to: ApplyTo,
        /// Whether each applied changeset becomes a commit.
        commit: bool,
        /// Whether confinement is required.
        confinement: Confinement,
    }

    /// When an approval carries over to a later checkpoint.
    Inherit {
        /// How much of the base must be unchanged.
        base: InheritBase,
        /// Globs of paths whose change in the base does not matter.
        except: Vec<String>,
    }

    /// Limits by what they limit.
    Budgets {
        /// For a whole task.
        task: Limits,
        /// For one step.
        step: Limits,
        /// For the reviews of a task.
        review: Limits,
    }

    /// What is removed from records and evidence.
    Redaction {
        /// Built-in sets of patterns.
        packs: Vec<RedactionPack>,
        /// Further patterns.
        extra: Vec<PatternFile>,
    }

    /// How long things are kept.
    Retention {
        /// How long a finished task is kept.
        done: Span,
    }

    /// What the built-in checks of the `rules` reviewer do.
    Checks {
        /// What the findings of each do.
        modes: BTreeMap<CheckName, CheckMode>,
        /// When a change is too large.
        size: SizeLimit,
    }

    /// When a change is too large.
    SizeLimit {
        /// The most files that it may touch.
        files: u32,
        /// The most lines that it may add and remove.
        lines: u32,
    }
}

/// Limits; `None` is not limited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model turns.
    pub turns: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Cost in millionths of the account's currency.
    pub cost_micros: Option<u64>,
    /// Time under lease.
    pub wall: Option<Span>,
    /// Review rounds.
    pub rounds: Option<u64>,
}

impl Checks {
    /// What the findings of a check do.
    pub fn mode(&self, check: CheckName) -> CheckMode {
        // A check that nobody mentions blocks.
        self.modes.get(&check).copied().unwrap_or(CheckMode::Block)
    }
}
