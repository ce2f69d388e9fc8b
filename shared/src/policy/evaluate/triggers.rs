//! Triggers: whether a checkpoint is written, and whether work waits for it.

use crate::policy::compile::CompiledPolicy;
use crate::policy::expr::World;
use crate::policy::facts::Facts;
use crate::records::Trigger;

/// What a trigger does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggerDecision {
    /// Whether a checkpoint is written.
    pub on: bool,
    /// Whether the worker parks until a decision; never without a checkpoint.
    pub gate: bool,
}

/// Whether `trigger` fires. A condition that fails counts as true: the checkpoint is written, the gate holds.
pub fn trigger_fires(policy: &CompiledPolicy, trigger: Trigger, facts: &Facts) -> TriggerDecision {
    let rule = &policy.policy().triggers.by_name[&trigger];
    let holds = match policy.triggers.get(&trigger) {
        Some(when) if rule.on => when.evaluate(&World::new(facts), &mut Vec::new()).unwrap_or(true),
        _ => true,
    };
    let on = rule.on && holds;
    TriggerDecision { on, gate: on && rule.gate }
}

/// The highest threshold of `trigger` that a share passes on its way from `before` to `now`, both in per cent.
pub fn threshold_crossed(policy: &CompiledPolicy, trigger: Trigger, before: i64, now: i64) -> Option<u32> {
    let at = &policy.policy().triggers.by_name[&trigger].at;
    at.iter().copied().rfind(|threshold| (before + 1..=now).contains(&i64::from(*threshold)))
}
