//! Whether the end of a step is worth a checkpoint, and which one.
//!
//! A command agent shows nothing of itself while it runs, so its checkpoints
//! stand at the ends of steps only. What changed nothing and can simply run
//! again never makes one. Which triggers are on, and which gate, is the
//! policy's to say: it is asked here and nowhere else.

use std::collections::BTreeSet;

use checkrein_shared::ids::StepId;
use checkrein_shared::records::{EffectClass, Plan, Step, StepAction, Trigger};
use checkrein_shared::time::Span;

/// A checkpoint that has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occasion {
    /// Why.
    pub(crate) trigger: Trigger,
    /// Whether the worker parks.
    pub(crate) gate: bool,
}

/// How a step ended, as far as triggers care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepEnd<'a> {
    /// The plan in force.
    pub(crate) plan: &'a Plan,
    /// The step.
    pub(crate) step: &'a Step,
    /// Steps that ended well, without this one.
    pub(crate) completed: &'a [StepId],
    /// Whether it changed the scratch.
    pub(crate) changed: bool,
    /// Whether its agent claimed anything or named something open.
    pub(crate) spoke: bool,
    /// Whether each completed step is applied by itself.
    pub(crate) apply_per_step: bool,
    /// How long ago the task's newest checkpoint, or else this attempt, began.
    pub(crate) since_checkpoint: Span,
    /// Checkpoints that are no gates must not be closer together than this.
    pub(crate) min_interval: Span,
    /// Checkpoints should not be further apart than this.
    pub(crate) max_interval: Span,
    /// Whether somebody asked for a pause.
    pub(crate) pause: bool,
}

impl StepEnd<'_> {
    /// Whether no step is left when this one is done.
    pub(crate) fn completes_plan(&self) -> bool {
        let left = |step: &&Step| step.id != self.step.id && !self.completed.contains(&step.id);
        !self.plan.steps.iter().any(|step| left(&step))
    }

    /// A call that reads only and changed nothing, or an agent's turn that brought nothing new.
    fn is_nothing_new(&self) -> bool {
        match self.step.action {
            StepAction::Run(_) => self.step.effect == EffectClass::ReadOnly && !self.changed,
            StepAction::Prompt(_) => !self.changed && !self.spoke,
        }
    }
}

/// The checkpoint that the end of a step asks for. `fires` asks the policy: `None` where a trigger is off, else
/// whether it gates.
pub(crate) fn after_step(end: &StepEnd<'_>, fires: impl Fn(Trigger) -> Option<bool>) -> Option<Occasion> {
    // Completion itself must be reviewed, also where nothing is left to apply; and nothing reaches the target ungated.
    if end.completes_plan() || (end.apply_per_step && end.changed) {
        return Some(Occasion { trigger: Trigger::ChangesetBeforeApply, gate: true });
    }
    if end.pause {
        return Some(Occasion { trigger: Trigger::TaskBeforePause, gate: true });
    }
    if end.is_nothing_new() {
        return None;
    }
    let part_done = ends_branch(end.plan, &end.step.id).then(|| fires(Trigger::PlanSubgraphDone)).flatten();
    if let Some(gate) = part_done.filter(|gate| *gate || end.since_checkpoint >= end.min_interval) {
        return Some(Occasion { trigger: Trigger::PlanSubgraphDone, gate });
    }
    // Time reached a threshold: without a checkpoint too much would hang on one.
    let sparse = end.since_checkpoint >= end.max_interval;
    sparse.then_some(Occasion { trigger: Trigger::BudgetThreshold, gate: false })
}

/// Whether a part of the plan is done with this step: a chain of steps ends where nothing, or several, or a step that
/// needs others too, comes next.
fn ends_branch(plan: &Plan, step: &StepId) -> bool {
    let mut next = plan.steps.iter().filter(|s| s.needs.contains(step));
    match (next.next(), next.next()) {
        (Some(only), None) => only.needs.iter().collect::<BTreeSet<_>>().len() > 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::Risk;

    use super::*;

    fn step(id: &str, needs: &[&str]) -> Step {
        Step {
            id: id.parse().unwrap(),
            action: StepAction::Run(vec!["true".into()]),
            needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
            verify: Vec::new(),
            risk: Risk::R1,
            effect: EffectClass::ReadOnly,
            handling: Default::default(),
        }
    }

    /// a -> b -> d, c -> d, d -> e
    fn plan() -> Plan {
        let steps = vec![step("a", &[]), step("b", &["a"]), step("c", &[]), step("d", &["b", "c"]), step("e", &["d"])];
        Plan { version: 1, steps }
    }

    fn end<'a>(plan: &'a Plan, id: &str, completed: &'a [StepId]) -> StepEnd<'a> {
        StepEnd {
            plan,
            step: plan.step(&id.parse().unwrap()).unwrap(),
            completed,
            changed: true,
            spoke: false,
            apply_per_step: false,
            since_checkpoint: Span::from_secs(1),
            min_interval: Span::from_secs(0),
            max_interval: Span::from_secs(3_600),
            pause: false,
        }
    }

    fn all_on(_: Trigger) -> Option<bool> {
        Some(false)
    }

    fn ids(names: &[&str]) -> Vec<StepId> {
        names.iter().map(|n| n.parse().unwrap()).collect()
    }

    fn trigger(end: &StepEnd<'_>) -> Option<(Trigger, bool)> {
        after_step(end, all_on).map(|o| (o.trigger, o.gate))
    }

    #[test]
    fn the_last_step_gates_even_where_it_changed_nothing_and_all_is_off() {
        let plan = plan();
        let completed = ids(&["a", "b", "c", "d"]);
        let last = StepEnd { changed: false, ..end(&plan, "e", &completed) };
        let off = |_| None;
        let gate = Some(Occasion { trigger: Trigger::ChangesetBeforeApply, gate: true });
        assert_eq!(after_step(&last, off), gate);
        assert_eq!(after_step(&StepEnd { pause: true, ..last }, off), gate);
    }

    #[test]
    fn what_brings_nothing_new_never_makes_a_checkpoint() {
        let mut plan = plan();
        let nothing = ids(&[]);
        for id in ["a", "b", "c", "d"] {
            let idle = StepEnd { changed: false, max_interval: Span::from_secs(0), ..end(&plan, id, &nothing) };
            assert_eq!(trigger(&idle), None, "{id}");
        }
        plan.steps[1].action = StepAction::Prompt("think".into());
        let thinking = StepEnd { changed: false, ..end(&plan, "b", &nothing) };
        assert_eq!(trigger(&thinking), None);
        assert!(trigger(&StepEnd { spoke: true, ..thinking }).is_some());
    }

    #[test]
    fn a_part_of_the_plan_ends_where_branches_meet_or_part() {
        let plan = plan();
        let nothing = ids(&[]);
        assert_eq!(trigger(&end(&plan, "a", &nothing)), None);
        for id in ["b", "c"] {
            assert_eq!(trigger(&end(&plan, id, &nothing)), Some((Trigger::PlanSubgraphDone, false)), "{id}");
        }
        assert_eq!(trigger(&end(&plan, "d", &nothing)), None);
    }

    #[test]
    fn each_changed_step_gates_where_each_is_applied() {
        let plan = plan();
        let nothing = ids(&[]);
        let per_step = StepEnd { apply_per_step: true, ..end(&plan, "a", &nothing) };
        assert_eq!(trigger(&per_step), Some((Trigger::ChangesetBeforeApply, true)));
        assert_eq!(trigger(&StepEnd { changed: false, ..per_step }), None);
    }

    #[test]
    fn a_pause_and_the_longest_interval_make_one_where_no_other_does() {
        let plan = plan();
        let nothing = ids(&[]);
        let pausing = StepEnd { pause: true, changed: false, ..end(&plan, "a", &nothing) };
        assert_eq!(trigger(&pausing), Some((Trigger::TaskBeforePause, true)));
        let sparse = StepEnd { max_interval: Span::from_secs(1), ..end(&plan, "a", &nothing) };
        assert_eq!(trigger(&sparse), Some((Trigger::BudgetThreshold, false)));
    }

    #[test]
    fn checkpoints_that_are_no_gates_keep_their_distance() {
        let plan = plan();
        let nothing = ids(&[]);
        let dense = StepEnd { min_interval: Span::from_secs(60), ..end(&plan, "b", &nothing) };
        assert_eq!(trigger(&dense), None);
        let gate = after_step(&dense, |_| Some(true));
        assert_eq!(gate, Some(Occasion { trigger: Trigger::PlanSubgraphDone, gate: true }));
    }
}
