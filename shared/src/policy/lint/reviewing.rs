//! Reviews and triggers that do nothing, or less than they seem to.

use super::{AgentKind, Warning, warn};
use crate::policy::compile::CompiledPolicy;
use crate::policy::words::CheckMode;
use crate::policy::words::CheckName;
use crate::records::{ReviewKind, Trigger};

/// Triggers that need to see inside an agent while it works.
const INSIDE: [Trigger; 4] =
    [Trigger::ToolBeforeHighRisk, Trigger::CompactionBefore, Trigger::ContextHealthLow, Trigger::RuntimeBeforeSwitch];

/// Triggers that every policy should have on: without them something passes unseen.
const MUST: [Trigger; 9] = [
    Trigger::ChangesetBeforeApply,
    Trigger::ChangesetAfterApply,
    Trigger::ToolBeforeHighRisk,
    Trigger::ApprovalAfter,
    Trigger::CompactionBefore,
    Trigger::RuntimeBeforeSwitch,
    Trigger::TaskBeforePause,
    Trigger::RetryExhausted,
    Trigger::HumanBeforeTakeover,
];

pub(super) fn lint(policy: &CompiledPolicy, agent: AgentKind, warnings: &mut Vec<Warning>) {
    let resolved = policy.policy();
    let derived = &resolved.sources[0].file;
    for (trigger, rule) in &resolved.triggers.by_name {
        let name = trigger.as_str();
        if MUST.contains(trigger) && !rule.on {
            warn(warnings, &rule.origin, format!("trigger `{name}` is off: what happens then leaves no checkpoint"));
        }
        let out_of_reach = agent == AgentKind::Command && INSIDE.contains(trigger);
        if out_of_reach && rule.on && rule.gate && rule.origin.file == *derived {
            let message =
                format!("trigger `{name}` never fires for an agent of kind `command`: it is a gate at step end only");
            warn(warnings, &rule.origin, message);
        }
        let reviewed = resolved.reviews.iter().any(|review| review.on.contains(trigger));
        if rule.on && rule.gate && !reviewed && rule.origin.file == *derived {
            warn(
                warnings,
                &rule.origin,
                format!("trigger `{name}` is a gate, but no review is on it: a person is asked"),
            );
        }
    }
    for review in &resolved.reviews {
        let name = &review.name;
        for trigger in review.on.iter().filter(|trigger| !resolved.triggers.by_name[trigger].on) {
            let message = format!("review `{name}` is on `{}`, which is off", trigger.as_str());
            warn(warnings, &review.origin, message);
        }
        for trigger in review.on.iter().filter(|trigger| review.blocking && !resolved.triggers.by_name[trigger].gate) {
            let message = format!("review `{name}` is blocking, but `{}` is no gate: work goes on", trigger.as_str());
            warn(warnings, &review.origin, message);
        }
        if review.count > 1 && matches!(review.kind, ReviewKind::Rules) {
            warn(
                warnings,
                &review.origin,
                format!("review `{name}`: {} times the same deterministic answer", review.count),
            );
        }
        if review.count == 1 && !review.independent.is_empty() {
            warn(warnings, &review.origin, format!("review `{name}`: a single reviewer is independent of nobody"));
        }
    }
    for check in [CheckName::Integrity, CheckName::Currency] {
        if resolved.checks.mode(check) != CheckMode::Block {
            let origin = &resolved.triggers.by_name[&Trigger::ChangesetBeforeApply].origin;
            warn(
                warnings,
                origin,
                format!("the check `{check}` does not block: a review then vouches for less than it seems"),
            );
        }
    }
}
