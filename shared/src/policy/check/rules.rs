//! Rules: what their keys mean together.

use super::Faults;
use crate::policy::file::With;
use crate::policy::words::Action;

pub(super) fn check(faults: &mut Faults<'_>) {
    let policy = faults.policy;
    if policy.rules.is_empty() {
        let top = faults.top();
        faults.add(&top, "there are no rules", None);
    }
    for rule in &policy.rules {
        let id = &rule.id;
        let mut fault = |message: String| faults.add(&rule.origin, message, None);
        if rule.on.is_empty() {
            fault(format!("rule `{id}` is on no event"));
        }
        if rule.limit == Some(0) {
            fault(format!("rule `{id}`: a limit of 0 never lets it decide; leave the rule out"));
        }
        if rule.with != With::Same && rule.action != Action::Retry && rule.then != Some(Action::Retry) {
            fault(format!("rule `{id}`: `with` belongs to `retry`"));
        }
        if rule.limit.is_some() && rule.beyond() == rule.action {
            fault(format!("rule `{id}`: `then` is what it does anyway, so the limit has no meaning"));
        }
        // Beyond its limit a rule must become stricter, never let through what it held back.
        if rule.limit.is_some() && strictness(rule.beyond()) < strictness(rule.action) {
            let message = format!("rule `{id}`: `then: {}` is weaker than `{}`", rule.beyond(), rule.action);
            faults.add(&rule.origin, message, "choose escalate, block or abort".to_owned());
        }
    }
}

/// How far an action is from simply going on.
fn strictness(action: Action) -> u8 {
    match action {
        Action::Continue | Action::Warn => 0,
        Action::Retry | Action::RequestEvidence => 1,
        Action::Escalate => 2,
        Action::Block | Action::Abort => 3,
    }
}
