//! Rules that never decide, or that do not do what they seem to.

use super::{Warning, warn};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expr::Expression;
use crate::policy::resolved::Rule;
use crate::policy::words::{Action, RuleEvent};

pub(super) fn lint(policy: &CompiledPolicy, warnings: &mut Vec<Warning>) {
    let rules: Vec<(&Rule, &Expression)> = policy.policy().rules.iter().zip(&policy.rules).collect();
    for (index, (rule, when)) in rules.iter().enumerate() {
        unreachable(rule, when, &rules[..index], &policy.policy().sources[0].file, warnings);
        unapproved(rule, when, warnings);
        let id = &rule.id;
        if rule.floor && matches!(rule.action, Action::Continue | Action::Warn) {
            warn(warnings, &rule.origin, format!("floor rule `{id}` lets work go on before any other rule is asked"));
        }
        if rule.on.iter().any(|on| *on != RuleEvent::EffectUnknown) && when.reads("call") {
            warn(warnings, &rule.origin, format!("rule `{id}` reads `call`; only `effect_unknown` is about a call"));
        }
        let escalates = rule.action == Action::Escalate || rule.limit.is_some() && rule.beyond() == Action::Escalate;
        if rule.level.is_some() && !escalates {
            warn(warnings, &rule.origin, format!("rule `{id}` names a level but never escalates"));
        }
        if rule.limit.is_some() && rule.then.is_none() {
            let message = format!("rule `{id}` does not say what follows (`then`) beyond its limit: a person is asked");
            warn(warnings, &rule.origin, message);
        }
        let loops = matches!(rule.action, Action::Retry | Action::RequestEvidence);
        if loops && rule.limit.is_none() {
            let message = format!("rule `{id}` may {} without end; give it a `limit`", rule.action);
            warn(warnings, &rule.origin, message);
        }
    }
}

/// Whether a rule can decide at all: for every event an earlier rule may always do so.
fn unreachable(
    rule: &Rule,
    when: &Expression,
    earlier: &[(&Rule, &Expression)],
    derived: &str,
    warnings: &mut Vec<Warning>,
) {
    if when.is_always_false() {
        warn(warnings, &rule.origin, format!("rule `{}` never matches: its condition is `false`", rule.id));
        return;
    }
    let covering = |on: &RuleEvent| {
        earlier.iter().find(|(other, when)| {
            // The same condition twice is as good as `true`: the second time it can only fail.
            other.on.contains(on) && (when.is_always_true() || other.when.source == rule.when.source)
        })
    };
    let hidden: Option<Vec<_>> = rule.on.iter().map(covering).collect();
    let Some(first) = hidden.as_ref().and_then(|hidden| hidden.first()) else { return };
    // A parent's rule that a child puts out of reach is what extending is for.
    if rule.origin.file == derived || rule.origin.file == first.0.origin.file {
        let message = format!("rule `{}` can never match: `{}` at {} does before", rule.id, first.0.id, first.0.origin);
        warn(warnings, &rule.origin, message);
    }
}

/// A rule that goes on at a gate although reviews are missing only ever escalates.
fn unapproved(rule: &Rule, when: &Expression, warnings: &mut Vec<Warning>) {
    let goes_on = matches!(rule.action, Action::Continue | Action::Warn);
    let at_gate = rule.on.iter().any(|on| matches!(on, RuleEvent::Round | RuleEvent::Timeout));
    if goes_on && at_gate && !when.reads("round") {
        let message = format!(
            "rule `{}` does not look at `round.complete`: where a review has not approved it escalates, it waives nothing",
            rule.id
        );
        warn(warnings, &rule.origin, message);
    }
}
