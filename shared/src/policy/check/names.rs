//! Names: well-formed, unique, and defined where they are used.

use std::collections::BTreeSet;

use super::Faults;
use crate::policy::{name, nearest};

pub(super) fn check(faults: &mut Faults<'_>) {
    let policy = faults.policy;
    let mut ids = BTreeSet::new();
    for rule in &policy.rules {
        if !name::is_valid(&rule.id) {
            faults.add(&rule.origin, format!("`{}` can't name a rule", rule.id), name::RULE.to_owned());
        }
        if matches!(rule.id.as_str(), crate::policy::NO_MATCH | crate::policy::EXPRESSION_ERROR) {
            faults.add(&rule.origin, format!("`{}` is what stands in for a rule", rule.id), None);
        }
        if !ids.insert(&rule.id) {
            faults.add(&rule.origin, format!("there are two rules `{}`", rule.id), None);
        }
        level(faults, &rule.origin, rule.level.as_deref());
    }
    let mut names = BTreeSet::new();
    for review in &policy.reviews {
        if !name::is_valid(&review.name) {
            faults.add(&review.origin, format!("`{}` can't name a review", review.name), name::RULE.to_owned());
        }
        if !names.insert(&review.name) {
            faults.add(&review.origin, format!("there are two reviews `{}`", review.name), None);
        }
        level(faults, &review.origin, review.level.as_deref());
        for verifier in review.verifiers.iter().filter(|verifier| !policy.verifiers.contains_key(*verifier)) {
            let hint = nearest::hint(verifier, policy.verifiers.keys().map(String::as_str));
            let hint = hint.or_else(|| Some("define it under `verifiers`".to_owned()));
            faults.add(&review.origin, format!("there is no verifier `{verifier}`"), hint);
        }
    }
    for (key, escalation) in &policy.escalation {
        if !name::is_valid(key) {
            faults.add(&escalation.origin, format!("`{key}` can't name a level"), name::RULE.to_owned());
        }
        level(faults, &escalation.origin, escalation.next.as_deref());
    }
    for constraint in policy.constraints.iter().filter(|constraint| !name::is_valid(&constraint.id)) {
        faults.add(&constraint.origin, format!("`{}` can't name a constraint", constraint.id), name::RULE.to_owned());
    }
    if !policy.escalation.contains_key(&policy.default_level) {
        let top = faults.top();
        faults.add(&top, format!("there is no level `{}`", policy.default_level), None);
    }
}

fn level(faults: &mut Faults<'_>, origin: &crate::policy::resolved::Origin, level: Option<&str>) {
    let levels = &faults.policy.escalation;
    if let Some(level) = level.filter(|level| !levels.contains_key(*level)) {
        let hint = nearest::hint(level, levels.keys().map(String::as_str));
        faults.add(origin, format!("there is no level `{level}`"), hint);
    }
}
