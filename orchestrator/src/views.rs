//! Tasks as people's tools see them. Shapes only; no decisions.

use std::collections::BTreeMap;

use checkrein_shared::api::{
    DecisionView, Epitaph, InboxItem, PolicyView, ReviewView, StepView, TaskSummary, TaskView,
};
use checkrein_shared::records::{Checked, JobKind};

use crate::describe::{task_state, waits_for_people};
use crate::lifecycle::{About, Answer, Item, Outcome, Ruling, Slot, State, StepStatus, Task, VerdictState};

/// The row of a list.
pub(crate) fn summary(task: &Task) -> TaskSummary {
    TaskSummary {
        id: task.id.clone(),
        name: task.name.clone(),
        state: task_state(&task.state),
        detail: detail(task),
        created_at: task.created_at,
        updated_at: task.updated_at,
        origin: task.origin.clone(),
        pruned_at: None,
    }
}

/// The row of a task that was pruned.
pub(crate) fn pruned_summary(epitaph: Epitaph) -> TaskSummary {
    TaskSummary {
        id: epitaph.id,
        name: epitaph.name,
        state: epitaph.outcome,
        detail: format!("{}; pruned {}", epitaph.detail, epitaph.pruned_at),
        created_at: epitaph.created_at,
        updated_at: epitaph.ended_at,
        origin: None,
        pruned_at: Some(epitaph.pruned_at),
    }
}

fn detail(task: &Task) -> String {
    let job = |job: &JobKind| match job {
        JobKind::Step { step, .. } => format!("step `{step}`"),
        JobKind::Apply { changeset, .. } => format!("apply {}", changeset.id),
        JobKind::Rebase => "rebase".to_owned(),
        JobKind::Evidence { step } => format!("evidence for step `{step}`"),
    };
    match &task.state {
        State::Queued { job: waiting } => format!("{}, waits for a worker", job(waiting)),
        State::Running { job: running, worker, .. } => format!("{} on {worker}", job(running)),
        State::Reviewing { slots } if waits_for_people(slots) => {
            task.items().first().map_or_else(String::new, |item| item.reason.clone())
        }
        State::Reviewing { slots } => {
            let open = slots.iter().filter(|s| s.answer == Answer::Awaited).count();
            format!("round {}, {open} of {} reviews awaited", task.round, slots.len())
        }
        State::Waiting { item } => item.reason.clone(),
        State::Held { by, folder, .. } => format!("{by} works in {folder}"),
        State::Paused { by, .. } => format!("by {by}"),
        State::Blocked { reason, .. } => reason.clone(),
        State::Cancelling { by } => format!("by {by}"),
        State::Done { outcome } => match outcome {
            Outcome::Completed {} => match task.applied.len() {
                0 => "nothing had to change".to_owned(),
                1 => "1 changeset applied".to_owned(),
                several => format!("{several} changesets applied"),
            },
            Outcome::Failed { reason } => reason.clone(),
            Outcome::Cancelled { by } => format!("by {by}"),
        },
    }
}

/// What left the task's state, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) verdicts: Vec<VerdictState>,
    pub(crate) rulings: Vec<Ruling>,
    /// What was looked at before the newest attempt.
    pub(crate) conditions: Vec<Checked>,
}

/// The whole task.
pub(crate) fn task_view(task: &Task, version: u64, past: &Past) -> TaskView {
    TaskView {
        summary: summary(task),
        objective: task.spec.objective.clone(),
        workspace: task.spec.workspace.clone(),
        policy: PolicyView { name: task.policy.name.clone(), digest: task.policy.digest },
        steps: steps(task),
        plan_hash: task.plan.hash(),
        epoch: task.epoch,
        round: task.round,
        version,
        head: task.head.clone(),
        accepted: task.accepted.clone(),
        base: task.base,
        tree: task.tree,
        proposed: task.subject.as_ref().map(|s| s.changeset.clone()),
        applied: task.applied.clone(),
        reviews: reviews(task, &past.verdicts),
        findings: task.findings.iter().map(|f| f.finding.clone()).collect(),
        item: inbox_items(task).into_iter().next(),
        held_in: match &task.state {
            State::Held { folder, .. } => Some(folder.clone()),
            _ => None,
        },
        decisions: decisions(task, &past.rulings),
        conditions: past.conditions.clone(),
        usage: BTreeMap::from([
            ("wall_ms".to_owned(), task.usage.wall_ms),
            ("rounds".to_owned(), u64::from(task.round)),
            ("failures".to_owned(), u64::from(task.usage.failures)),
        ]),
    }
}

fn steps(task: &Task) -> Vec<StepView> {
    let running = match &task.state {
        State::Running { job: JobKind::Step { step, .. }, .. } => Some(step),
        _ => None,
    };
    let view = |id: &checkrein_shared::ids::StepId| {
        let state = match task.steps.get(id) {
            _ if running == Some(id) => "running",
            Some(StepStatus::Completed) => "completed",
            Some(StepStatus::PendingReview) => "pending_review",
            Some(StepStatus::Failed) => "failed",
            Some(StepStatus::Pending) | None => "pending",
        };
        StepView { id: id.to_string(), state: state.to_owned() }
    };
    task.plan.order().into_iter().map(view).collect()
}

fn reviews(task: &Task, past: &[VerdictState]) -> Vec<ReviewView> {
    let given = |v: &VerdictState| ReviewView {
        id: v.id.to_string(),
        review: v.review.clone(),
        round: v.round,
        checkpoint: v.bindings.checkpoint_id.clone(),
        verdict: Some(v.verdict),
        current: v.stale.is_empty(),
        stale: v.stale.clone(),
        timed_out: false,
    };
    // What is history authorises nothing, also where nothing changed under it but the round.
    let past = past.iter().map(|verdict| ReviewView { current: false, ..given(verdict) });
    let mut views: Vec<ReviewView> = past.chain(task.verdicts.iter().map(given)).collect();
    let (State::Reviewing { slots }, Some(subject)) = (&task.state, &task.subject) else { return views };
    let open = |s: &Slot| ReviewView {
        id: s.id.to_string(),
        review: s.review.clone(),
        round: task.round,
        checkpoint: subject.checkpoint.id.clone(),
        verdict: None,
        current: false,
        stale: Vec::new(),
        timed_out: s.answer == Answer::TimedOut,
    };
    views.extend(slots.iter().filter(|s| !matches!(s.answer, Answer::Given(_))).map(open));
    views
}

fn decisions(task: &Task, past: &[Ruling]) -> Vec<DecisionView> {
    let view = |r: &Ruling| DecisionView {
        at: r.at,
        action: r.action.clone(),
        rule: r.rule.clone(),
        origin: r.origin.clone(),
        policy: task.policy.digest,
        message: r.message.clone(),
        values: r.values.clone(),
    };
    past.iter().chain(&task.rulings).map(view).collect()
}

/// The items of a task that wait for a person.
pub(crate) fn inbox_items(task: &Task) -> Vec<InboxItem> {
    let view = |item: &Item| InboxItem {
        id: item.id.clone(),
        task_id: task.id.clone(),
        task: task.name.clone(),
        level: item.level.clone(),
        reason: item.reason.clone(),
        checkpoint_hash: Some(item.hash),
        checkpoint: item.checkpoint.clone(),
        opened_at: item.opened_at,
        deadline: item.deadline,
        claimed_by: item.claimed_by.clone(),
        approvers_needed: item.approvers,
        approved_by: item.approved_by.iter().cloned().collect(),
        stale: item.stale.clone(),
        effect: match &item.about {
            About::Effect { key, .. } => Some(*key),
            _ => None,
        },
    };
    task.items().into_iter().map(view).collect()
}
