//! The plan: a DAG of steps. Progress is not part of it, so that its hash
//! changes only when somebody changes the plan.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::handling::Handling;
use super::scale::Risk;
use crate::digest::Digest;
use crate::ids::StepId;
use crate::json;

/// The most steps a plan may have.
pub const STEPS_MAX: usize = 1_000;

/// What a step does outside the scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Nothing: it may run any number of times. (It may change the scratch.)
    #[default]
    ReadOnly,
    /// It changes the world outside, reversibly.
    Effectful,
    /// It changes the world outside for good.
    Irreversible,
}

/// How a step is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StepAction {
    /// A command, as an argument vector.
    Run(Vec<String>),
    /// An instruction to the task's agent.
    Prompt(String),
}

/// One node of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, unique in the plan.
    pub id: StepId,
    /// What carries it out.
    pub action: StepAction,
    /// Steps that must be completed before.
    pub needs: Vec<StepId>,
    /// Names of the policy's verifiers that must pass for it.
    pub verify: Vec<String>,
    /// Its author's estimate of the risk.
    pub risk: Risk,
    /// What it does outside the scratch.
    pub effect: EffectClass,
    /// How its command is handled.
    #[serde(default, skip_serializing_if = "Handling::is_default")]
    pub handling: Handling,
}

/// A version of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Grows by one with each change, from 1.
    pub version: u64,
    /// The steps, in the order in which their author wrote them.
    pub steps: Vec<Step>,
}

/// Why a plan can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It has no steps.
    #[error("the plan has no steps: add at least one with `run` or `prompt`")]
    Empty,
    /// It has too many steps.
    #[error("the plan has {0} steps, more than the {STEPS_MAX} that are allowed")]
    TooLong(usize),
    /// Two steps have one name.
    #[error("two steps are called `{0}`: give each its own id")]
    Duplicate(StepId),
    /// A step needs one that is not there.
    #[error("step `{step}` needs `{needs}`, which is not in the plan")]
    Unknown {
        /// The step.
        step: StepId,
        /// What it needs.
        needs: StepId,
    },
    /// Steps wait for each other.
    #[error("step `{0}` can never start: its `needs` lead back to itself")]
    Cycle(StepId),
}

impl Plan {
    /// Checks names, references and cycles.
    ///
    /// # Errors
    ///
    /// The first [`PlanError`] found, in the order of the steps.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.steps.is_empty() {
            return Err(PlanError::Empty);
        }
        if self.steps.len() > STEPS_MAX {
            return Err(PlanError::TooLong(self.steps.len()));
        }
        let mut names = BTreeSet::new();
        for step in &self.steps {
            if !names.insert(&step.id) {
                return Err(PlanError::Duplicate(step.id.clone()));
            }
        }
        for step in &self.steps {
            if let Some(needs) = step.needs.iter().find(|n| !names.contains(n)) {
                return Err(PlanError::Unknown { step: step.id.clone(), needs: needs.clone() });
            }
        }
        let order = self.order();
        match self.steps.iter().find(|s| !order.contains(&&s.id)) {
            Some(stuck) => Err(PlanError::Cycle(stuck.id.clone())),
            None => Ok(()),
        }
    }

    /// The order in which steps run: needs first, else as written. Steps in a cycle are left out.
    pub fn order(&self) -> Vec<&StepId> {
        let mut done: Vec<&StepId> = Vec::with_capacity(self.steps.len());
        let mut placed: BTreeSet<&StepId> = BTreeSet::new();
        while let Some(step) =
            self.steps.iter().find(|s| !placed.contains(&s.id) && s.needs.iter().all(|n| placed.contains(n)))
        {
            placed.insert(&step.id);
            done.push(&step.id);
        }
        done
    }

    /// The step with this name.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps.iter().find(|s| &s.id == id)
    }

    /// The steps that need `id`, directly or through others.
    pub fn downstream(&self, id: &StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::from([id.clone()]);
        for name in self.order() {
            let reached = self.step(name).is_some_and(|s| s.needs.iter().any(|n| found.contains(n)));
            if reached {
                found.insert(name.clone());
            }
        }
        found.remove(id);
        found
    }

    /// The digest of the steps: id, action, needs, verify, risk, effect and handling of each; never progress or version.
    pub fn hash(&self) -> Digest {
        json::digest(&self.steps)
            .expect("steps hold strings, enums and durations only, which always have a canonical form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &str, needs: &[&str]) -> Step {
        Step {
            id: id.parse().unwrap(),
            action: StepAction::Run(vec!["true".into()]),
            needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
            verify: Vec::new(),
            risk: Risk::R1,
            effect: EffectClass::ReadOnly,
            handling: Handling::default(),
        }
    }

    fn plan(steps: Vec<Step>) -> Plan {
        Plan { version: 1, steps }
    }

    #[test]
    fn a_plan_that_could_never_finish_is_refused() {
        assert_eq!(plan(vec![]).check(), Err(PlanError::Empty));
        assert!(matches!(plan(vec![step("a", &[]), step("a", &[])]).check(), Err(PlanError::Duplicate(_))));
        assert!(matches!(plan(vec![step("a", &["b"])]).check(), Err(PlanError::Unknown { .. })));
        assert!(matches!(plan(vec![step("a", &["b"]), step("b", &["a"])]).check(), Err(PlanError::Cycle(_))));
        assert!(matches!(plan(vec![step("a", &["a"])]).check(), Err(PlanError::Cycle(_))));
    }

    #[test]
    fn needs_come_first_and_downstream_follows_them() {
        let plan = plan(vec![step("c", &["b"]), step("a", &[]), step("b", &["a"]), step("x", &[])]);
        let order: Vec<&str> = plan.order().into_iter().map(StepId::as_str).collect();
        assert_eq!(order, ["a", "b", "c", "x"]);
        let down: Vec<String> = plan.downstream(&"a".parse().unwrap()).into_iter().map(String::from).collect();
        assert_eq!(down, ["b", "c"]);
    }

    #[test]
    fn the_hash_follows_the_steps_and_not_the_version() {
        let one = plan(vec![step("a", &[])]);
        let mut two = one.clone();
        two.version = 9;
        assert_eq!(one.hash(), two.hash());
        two.steps[0].handling.probe = Some(vec!["true".into()]);
        assert_ne!(one.hash(), two.hash());
        two.steps[0].handling = Handling::default();
        two.steps[0].verify.push("unit".into());
        assert_ne!(one.hash(), two.hash());
    }
}
