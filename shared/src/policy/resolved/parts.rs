//! The parts of a resolved policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Origin, When};
use crate::digest::Digest;
use crate::policy::facts::Facts;
use crate::policy::file::{Command, ExpectFile, PatternFile, Quorum, With};
use crate::policy::words::{
    Action, ApplyTo, ApplyWhen, CheckMode, CheckName, Confinement, Excluded, Independence, InheritBase, Network,
    OnTimeout, RedactionPack, RuleEvent, ToolMode,
};
use crate::records::{EffectClass, EvidenceKind, ReviewKind, Trigger};
use crate::time::Span;

macro_rules! parts {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }
    )*};
}

parts! {
    /// A rule that every result must keep, with its text.
    Constraint {
        /// Its name.
        id: String,
        /// Its version.
        version: u32,
        /// The rule.
        text: String,
        /// The digest of the text.
        hash: Digest,
        /// Where it stands.
        origin: Origin,
    }

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

    /// The tools that one file lists.
    ToolLayer {
        /// The file.
        file: String,
        /// Its entries; the first that matches counts.
        tools: Vec<Tool>,
    }

    /// How calls of some tools are treated.
    Tool {
        /// A glob over tool names.
        matches: String,
        /// What a call does outside the scratch.
        effect: EffectClass,
        /// How a call is let through.
        mode: ToolMode,
        /// The entry counts only where this holds; `None`: always.
        when: Option<When>,
        /// How long a call may take; `None`: the worker's own limit.
        timeout: Option<Span>,
        /// Tells whether an interrupted call took effect.
        probe: Option<Command>,
        /// Shows what a call would do.
        dry_run: Option<Command>,
        /// Undoes a call.
        compensate: Option<Command>,
        /// Where it stands.
        origin: Origin,
    }

    /// When checkpoints are written.
    Triggers {
        /// Every trigger.
        by_name: BTreeMap<Trigger, TriggerRule>,
        /// Checkpoints that are no gates are at least this far apart.
        min_interval: Span,
        /// A checkpoint is written after this long, whatever happened.
        max_interval: Span,
    }

    /// When one trigger fires.
    TriggerRule {
        /// Whether a checkpoint is written.
        on: bool,
        /// Whether the worker parks until a decision.
        gate: bool,
        /// It fires only where this holds; `None`: always.
        when: Option<When>,
        /// Thresholds in per cent, ascending; empty where the trigger has none.
        at: Vec<u32>,
        /// Where it stands.
        origin: Origin,
    }

    /// A command that a reviewer runs in a fresh copy of the checkpoint's tree.
    Verifier {
        /// The command.
        run: Command,
        /// How long it may take.
        timeout: Span,
        /// What network it sees.
        network: Network,
        /// Paths taken from the target at base.
        carry: Vec<String>,
        /// Globs of files restored from the base before it runs.
        from_base: Vec<String>,
        /// Globs of the files that it says something about.
        covers: Vec<String>,
        /// Where it stands.
        origin: Origin,
    }

    /// A judgement that is asked for.
    Review {
        /// Its name.
        name: String,
        /// Who judges.
        kind: ReviewKind,
        /// The triggers whose checkpoints it judges.
        on: Vec<Trigger>,
        /// It is asked for only where this holds; `None`: always.
        when: Option<When>,
        /// The verifiers that it runs, by name.
        verifiers: Vec<String>,
        /// Whether work waits for it.
        blocking: bool,
        /// How many reviewers judge.
        count: u32,
        /// How many of them must approve.
        quorum: Quorum,
        /// Whether one negative verdict is enough.
        veto: bool,
        /// In what its reviewers must differ.
        independent: Vec<Independence>,
        /// Kinds of evidence that every reviewer must have fetched.
        must_read: Vec<EvidenceKind>,
        /// How long it may take.
        timeout: Span,
        /// The model that judges; `None`: the settings' default.
        model: Option<String>,
        /// The program that judges, for the kind `command`.
        command: Option<Command>,
        /// The level that is asked, for the kind `human`.
        level: Option<String>,
        /// Where it stands.
        origin: Origin,
    }

    /// A rule.
    Rule {
        /// Its name.
        id: String,
        /// Whether it is asked before all others.
        floor: bool,
        /// The events that it is asked about.
        on: Vec<RuleEvent>,
        /// The condition.
        when: When,
        /// What to do.
        action: Action,
        /// Who carries out a retry.
        with: With,
        /// What people and the agent are told.
        message: Option<String>,
        /// How often it may decide so for one task; `None`: as often as it likes.
        limit: Option<u32>,
        /// What to do beyond the limit.
        then: Action,
        /// The level to escalate to; `None`: the policy's default level.
        level: Option<String>,
        /// Where it stands.
        origin: Origin,
    }

    /// When an approval carries over to a later checkpoint.
    Inherit {
        /// How much of the base must be unchanged.
        base: InheritBase,
        /// Globs of paths whose change in the base does not matter.
        except: Vec<String>,
    }

    /// Who is asked, and how long.
    Level {
        /// People and groups.
        to: Vec<String>,
        /// Sinks that are told.
        notify: Vec<String>,
        /// How long they have.
        deadline: Span,
        /// Office hours in which the deadline runs; `None`: always.
        hours: Option<String>,
        /// How many people must approve.
        approvers: u32,
        /// Who may not.
        exclude: Vec<Excluded>,
        /// The level that is asked when the deadline passes; `None`: `on_timeout` happens.
        next: Option<String>,
        /// What happens when it passes and there is no next level.
        on_timeout: OnTimeout,
        /// Where it stands.
        origin: Origin,
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

    /// An example that the policy must decide as it says.
    PolicyTest {
        /// What it shows.
        name: String,
        /// The event.
        on: RuleEvent,
        /// How often each rule decided before.
        fired: BTreeMap<String, u32>,
        /// The facts.
        facts: Facts,
        /// What must follow.
        expect: ExpectFile,
        /// Where it stands.
        origin: Origin,
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

impl Verifier {
    /// The argument vector.
    pub fn argv(&self) -> &[String] {
        self.run.argv()
    }
}
