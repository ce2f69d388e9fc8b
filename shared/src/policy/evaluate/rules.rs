//! The rules: the first that matches decides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::compile::CompiledPolicy;
use crate::policy::expr::{Seen, World};
use crate::policy::facts::Facts;
use crate::policy::file::With;
use crate::policy::resolved::{Origin, Rule};
use crate::policy::words::{Action, RuleEvent};

/// What stands in for the rule where none matched.
pub const NO_MATCH: &str = "no-match";

/// What stands in for the rule where an expression failed.
pub const EXPRESSION_ERROR: &str = "expression-error";

/// How often each rule has decided for the task before, by id.
pub type Fired = BTreeMap<String, u32>;

/// Why an outcome is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The rule matched.
    Matched,
    /// The rule matched, and has decided as often as it may: `then` counts.
    LimitReached,
    /// The rule would go on at a gate whose reviews have not all approved. It can't: a rule chooses actions, only
    /// `reviews` says who must approve.
    Unapproved,
    /// No rule matched.
    NoMatch,
    /// A rule's condition failed.
    ExpressionError,
}

/// A rule that was asked, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Its id.
    pub rule: String,
    /// Where it stands.
    pub origin: Origin,
    /// Whether its condition held; `None` where it failed.
    pub matched: Option<bool>,
    /// What its condition saw.
    pub values: Vec<Seen>,
}

/// What the rules decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The rule that decided, or [`NO_MATCH`] or [`EXPRESSION_ERROR`].
    pub rule: String,
    /// Where the rule stands; `None` where no rule matched.
    pub origin: Option<Origin>,
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// For a retry: who carries it out.
    pub with: With,
    /// What people and the agent are told.
    pub message: String,
    /// For an escalation: the level.
    pub level: String,
    /// What the deciding condition saw.
    pub values: Vec<Seen>,
    /// Every rule that was asked, in order.
    pub trace: Vec<Tried>,
}

/// Asks the rules about `on`; the first whose condition holds decides.
///
/// No match escalates. So does a condition that fails: the rules after it are
/// not asked. So does a rule that would go on at a gate (`round`, `timeout`)
/// while `facts.round.complete` is false.
pub fn evaluate_rules(policy: &CompiledPolicy, on: RuleEvent, facts: &Facts, fired: &Fired) -> Outcome {
    let world = World::new(facts);
    let mut trace = Vec::new();
    let resolved = policy.policy();
    for (rule, when) in resolved.rules.iter().zip(&policy.rules).filter(|(rule, _)| rule.on.contains(&on)) {
        let mut values = Vec::new();
        let result = when.evaluate(&world, &mut values);
        let matched = result.as_ref().ok().copied();
        trace.push(Tried { rule: rule.id.clone(), origin: rule.origin.clone(), matched, values: values.clone() });
        match result {
            Ok(false) => {}
            Ok(true) => return decided(policy, rule, on, facts, fired, values, trace),
            Err(error) => {
                let message = format!("the condition of rule `{}` failed: {error}", rule.id);
                let outcome = escalation(policy, EXPRESSION_ERROR, Reason::ExpressionError, message, trace);
                let level = rule.level.clone().unwrap_or(outcome.level);
                return Outcome { origin: Some(rule.origin.clone()), level, values, ..outcome };
            }
        }
    }
    escalation(policy, NO_MATCH, Reason::NoMatch, format!("no rule decides about `{on}`"), trace)
}

fn decided(
    policy: &CompiledPolicy,
    rule: &Rule,
    on: RuleEvent,
    facts: &Facts,
    fired: &Fired,
    values: Vec<Seen>,
    trace: Vec<Tried>,
) -> Outcome {
    let before = fired.get(&rule.id).copied().unwrap_or(0);
    let exhausted = rule.limit.is_some_and(|limit| before >= limit);
    let action = if exhausted { rule.beyond() } else { rule.action };
    let reason = if exhausted { Reason::LimitReached } else { Reason::Matched };
    let stated = rule.message.clone().unwrap_or_default();
    let outcome = Outcome {
        rule: rule.id.clone(),
        origin: Some(rule.origin.clone()),
        action,
        reason,
        with: rule.with.clone(),
        message: stated,
        level: rule.level.clone().unwrap_or_else(|| policy.policy().default_level.clone()),
        values,
        trace,
    };
    let goes_on = matches!(action, Action::Continue | Action::Warn);
    let at_gate = matches!(on, RuleEvent::Round | RuleEvent::Timeout);
    if goes_on && at_gate && !facts.round.complete {
        let message = format!("rule `{}` would {action}, but the reviews of this gate have not all approved", rule.id);
        return Outcome { action: Action::Escalate, reason: Reason::Unapproved, message, ..outcome };
    }
    outcome
}

fn escalation(policy: &CompiledPolicy, rule: &str, reason: Reason, message: String, trace: Vec<Tried>) -> Outcome {
    Outcome {
        rule: rule.to_owned(),
        origin: None,
        action: Action::Escalate,
        reason,
        with: With::Same,
        message,
        level: policy.policy().default_level.clone(),
        values: Vec::new(),
        trace,
    }
}
