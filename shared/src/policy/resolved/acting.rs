//! Resolved: tools, triggers, rules and the policy's own examples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Origin, When};
use crate::policy::facts::Facts;
use crate::policy::file::{Command, ExpectFile, With};
use crate::policy::words::{Action, RuleEvent, ToolMode};
use crate::records::{EffectClass, Trigger};
use crate::time::Span;

parts! {
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
        /// What to do beyond the limit; `None`: a person is asked.
        then: Option<Action>,
        /// The level to escalate to; `None`: the policy's default level.
        level: Option<String>,
        /// Where it stands.
        origin: Origin,
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

impl Rule {
    /// What to do beyond the limit.
    pub fn beyond(&self) -> Action {
        self.then.unwrap_or(Action::Escalate)
    }
}
