//! What a seed chooses before anything happens: who takes part, under which policy, and how bad the weather is.

use checkrein_shared::records::{EffectClass, Handling, Plan, Risk, Step, StepAction};

use crate::keys::REVIEWERS_MAX;
use crate::policies::POLICIES;
use crate::rng::Rng;

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// The index of the policy.
    pub(crate) policy: usize,
    pub(crate) tasks: usize,
    pub(crate) steps: usize,
    pub(crate) workers: usize,
    pub(crate) reviewers: usize,
    /// Whether worker, reviewers and bus die with the orchestrator.
    pub(crate) all_inside: bool,
    /// Whether a step changes the world outside.
    pub(crate) effectful: bool,
    /// How much that step changes there.
    pub(crate) effect: EffectClass,
    /// How that step is handled.
    pub(crate) handling: Handling,
    /// How long there are faults, in milliseconds.
    pub(crate) chaos: u64,
    /// The mean time between two acts of people, in milliseconds.
    pub(crate) people: u64,
    /// One in how many steps of a commit is the last one of its process.
    pub(crate) crash_once_in: u64,
    /// How often messages suffer, in per cent.
    pub(crate) bad_bus: u64,
    /// How often workers and reviewers misbehave, in per cent.
    pub(crate) misconduct: u64,
    /// How often a step fails and a reviewer objects, in per cent.
    pub(crate) objections: u64,
    /// When a segment of the journal is full.
    pub(crate) segment_bytes_max: usize,
}

impl Scenario {
    pub(crate) fn new(rng: &Rng) -> Self {
        Self {
            policy: rng.index(POLICIES.len()),
            tasks: if rng.once_in(4) { 2 } else { 1 },
            steps: *rng.pick(&[1, 1, 2, 2, 3]),
            workers: *rng.pick(&[1, 2, 2]),
            reviewers: rng.index(REVIEWERS_MAX) + 1,
            all_inside: rng.percent(40),
            effectful: rng.percent(30),
            effect: if rng.once_in(4) { EffectClass::Irreversible } else { EffectClass::Effectful },
            handling: match rng.below(3) {
                0 => Handling { idempotent: true, ..Handling::default() },
                1 => Handling { probe: Some(vec!["ask".into()]), ..Handling::default() },
                _ => Handling::default(),
            },
            chaos: rng.between(1, 5) * 60_000,
            people: *rng.pick(&[10_000, 25_000, 60_000, 60_000, 300_000]),
            crash_once_in: *rng.pick(&[40, 100, 400, 1_000_000]),
            bad_bus: *rng.pick(&[0, 3, 10]),
            misconduct: *rng.pick(&[0, 5, 15]),
            objections: *rng.pick(&[5, 15, 35]),
            segment_bytes_max: *rng.pick(&[30_000, 200_000, 1 << 30]),
        }
    }

    /// The plan of every task.
    pub(crate) fn plan(&self) -> Plan {
        let mut steps = Vec::new();
        for number in 0..self.steps {
            let before: Option<usize> = number.checked_sub(1);
            let effectful = self.effectful && number == self.steps / 2;
            steps.push(Step {
                id: format!("s{number}").parse().expect("an id"),
                action: if effectful {
                    StepAction::Run(vec!["deploy".into()])
                } else {
                    StepAction::Prompt("do it".into())
                },
                needs: before.map(|before| format!("s{before}").parse().expect("an id")).into_iter().collect(),
                verify: vec!["unit".into()],
                risk: Risk::R1,
                effect: if effectful { self.effect } else { EffectClass::ReadOnly },
                handling: if effectful { self.handling.clone() } else { Handling::default() },
            });
        }
        Plan { version: 1, steps }
    }
}
