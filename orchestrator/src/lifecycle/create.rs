//! The first event of a task: its creation.

use std::collections::BTreeMap;

use checkrein_shared::ids::{RootId, TaskId};
use checkrein_shared::records::{Conversation, JobKind, Plan};
use checkrein_shared::time::Timestamp;

use super::decision::{Decision, IllegalTransition};
use super::task::{PolicyPin, SpecState, State, StepStatus, Task, Usage};
use super::turn::{Context, Turn};

/// Everything that a new task begins with; checked before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// The task file that it came from.
    pub origin: Option<String>,
    /// Who submits it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What is wanted.
    pub spec: SpecState,
    /// The policy that it pins.
    pub policy: PolicyPin,
    /// The plan.
    pub plan: Plan,
    /// The target.
    pub root_id: RootId,
}

/// Creates a task and queues its first step.
///
/// # Errors
///
/// [`IllegalTransition`] where the plan has no step that could begin.
pub fn create(new: NewTask, context: &Context<'_>) -> Result<Decision, IllegalTransition> {
    let steps: BTreeMap<_, _> = new.plan.steps.iter().map(|s| (s.id.clone(), StepStatus::Pending)).collect();
    let Some(first) = new.plan.order().first().map(|id| (*id).clone()) else {
        let hint = "the plan has no step that could begin".to_owned();
        return Err(IllegalTransition { state: "new", event: "submitted", hint });
    };
    let job = JobKind::Step { step: first, conversation: Conversation::Same };
    let task = Task {
        id: new.id,
        name: new.name,
        origin: new.origin,
        submitted_by: new.by,
        created_at: new.at,
        updated_at: new.at,
        spec: new.spec,
        policy: new.policy,
        plan: new.plan,
        steps,
        root_id: new.root_id,
        // Entering the queue from here leaves nothing behind.
        state: State::Blocked { reason: "being created".into(), redo: false },
        epoch: 0,
        head: None,
        accepted: None,
        base: None,
        tree: None,
        evidence_index: None,
        save_point: None,
        subject: None,
        round: 0,
        verdicts: Vec::new(),
        judged: Vec::new(),
        findings: Vec::new(),
        verifiers: BTreeMap::new(),
        grants: Vec::new(),
        approvals: Vec::new(),
        editors: std::collections::BTreeSet::new(),
        required_actions: Vec::new(),
        effects: Vec::new(),
        applied: Vec::new(),
        applied_steps: std::collections::BTreeSet::new(),
        drifted: None,
        late_veto: false,
        usage: Usage::default(),
        rule_counts: BTreeMap::new(),
        rulings: Vec::new(),
    };
    let mut turn = Turn::new(&task, new.at, "submitted", *context);
    turn.queue(job);
    turn.finish(Ok(None))
}
