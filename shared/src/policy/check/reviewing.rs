//! Reviews, levels and triggers: what must fit together.

use super::Faults;
use crate::policy::file::Quorum;
use crate::records::{ReviewKind, Trigger};

/// The most reviewers of one review.
const COUNT_MAX: u32 = 16;

pub(super) fn check(faults: &mut Faults<'_>) {
    let policy = faults.policy;
    for review in &policy.reviews {
        let name = &review.name;
        let mut fault = |message: String| faults.add(&review.origin, message, None);
        if review.on.is_empty() {
            fault(format!("review `{name}` is on no trigger"));
        }
        if !(1..=COUNT_MAX).contains(&review.count) {
            fault(format!("review `{name}`: `count` must be from 1 to {COUNT_MAX}"));
        }
        if let Quorum::Count(quorum) = review.quorum
            && quorum > review.count
        {
            fault(format!("review `{name}`: {} reviewers can't give {quorum} approvals", review.count));
        }
        if review.timeout.as_millis() == 0 {
            fault(format!("review `{name}` has no time at all"));
        }
        match review.kind {
            ReviewKind::Human if review.level.is_none() => fault(format!("review `{name}` needs a `level` to ask")),
            ReviewKind::Command if review.command.is_none() => fault(format!("review `{name}` needs a `command`")),
            _ => {}
        }
    }
    for (name, level) in &policy.escalation {
        if level.to.is_empty() {
            faults.add(&level.origin, format!("level `{name}` asks nobody"), "name people under `to`".to_owned());
        }
        if level.approvers == 0 {
            faults.add(&level.origin, format!("level `{name}` needs at least one approver"), None);
        }
        if level.deadline.as_millis() == 0 {
            faults.add(&level.origin, format!("level `{name}` has no time at all"), None);
        }
    }
    for (name, verifier) in policy.verifiers.iter().filter(|(_, verifier)| verifier.timeout.as_millis() == 0) {
        faults.add(&verifier.origin, format!("verifier `{name}` has no time at all"), None);
    }
    triggers(faults);
}

fn triggers(faults: &mut Faults<'_>) {
    let policy = faults.policy;
    for trigger in Trigger::ALL {
        let Some(rule) = policy.triggers.by_name.get(trigger) else {
            let top = faults.top();
            faults.add(&top, format!("trigger `{}` is missing", trigger.as_str()), None);
            continue;
        };
        let name = trigger.as_str();
        let has_thresholds = matches!(trigger, Trigger::BudgetThreshold | Trigger::ContextHealthLow);
        if !has_thresholds && !rule.at.is_empty() {
            faults.add(&rule.origin, format!("trigger `{name}` has no thresholds (`at`)"), None);
        }
        if has_thresholds && rule.on && rule.at.is_empty() {
            let hint = "such as `at: [80]`".to_owned();
            faults.add(&rule.origin, format!("trigger `{name}` needs thresholds (`at`)"), hint);
        }
        if rule.at.iter().any(|at| !(1..=100).contains(at)) || !rule.at.is_sorted_by(|a, b| a < b) {
            faults.add(&rule.origin, format!("trigger `{name}`: `at` must ascend from 1 to 100"), None);
        }
        // The one gate that no policy can open: nothing reaches the target without a grant.
        if *trigger == Trigger::ChangesetBeforeApply && (!rule.on || !rule.gate || rule.when.is_some()) {
            let message = format!("`{name}` must be on, a gate, and without `when`: it guards the target");
            faults.add(&rule.origin, message, None);
        }
    }
}
