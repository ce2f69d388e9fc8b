//! What every state must look like: bounded, ended once, and never behind what it was.

use checkrein_orchestrator::lifecycle::{EventKind, Outcome, State, StepStatus, Task};
use checkrein_shared::records::AttemptOutcome;

/// No state is larger, in bytes.
pub(super) const STATE_BYTES_MAX: usize = 256 << 10;

pub(super) fn check(before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    if next.epoch < before.epoch || next.round < before.round {
        return Some("epoch or round went back".to_owned());
    }
    if let EventKind::AttemptEnded { attempt } = event
        && !matches!(attempt.outcome, AttemptOutcome::Applied { .. })
        && attempt.epoch != before.epoch
    {
        return Some(format!("an attempt with epoch {} spoke for epoch {}", attempt.epoch, before.epoch));
    }
    if let State::Done { outcome } = &before.state
        && !matches!(&next.state, State::Done { outcome: still } if still == outcome)
    {
        return Some(format!("it had ended ({outcome:?}) and is {} now", next.state.name()));
    }
    let was_running = matches!(before.state, State::Running { .. } | State::Cancelling { .. });
    if was_running && matches!(next.state, State::Queued { .. }) && next.epoch == before.epoch {
        return Some("it is dispatched again with the epoch of an attempt that was leased".to_owned());
    }
    if let (State::Running { .. }, false) = (&next.state, was_running) {
        let leased = matches!((event, &before.state), (EventKind::LeaseTaken { epoch, .. }, State::Queued { .. })
            if *epoch == before.epoch);
        if !leased {
            return Some(format!("it runs, and nobody took the lease ({})", event.name()));
        }
    }
    check_end(before, next).or_else(|| check_bounds(next))
}

/// Completed means: every step done, and everything that they changed is in the target.
fn check_end(before: &Task, next: &Task) -> Option<String> {
    if matches!(before.state, State::Done { .. }) || next.state != (State::Done { outcome: Outcome::Completed {} }) {
        return None;
    }
    let open = next.plan.steps.iter().find(|step| next.steps.get(&step.id) != Some(&StepStatus::Completed));
    if let Some(step) = open {
        return Some(format!("it is completed, and step `{}` is not", step.id));
    }
    if next.accepted.is_none() {
        return Some("it is completed, and nothing was ever accepted".to_owned());
    }
    (next.tree != next.base).then(|| "it is completed, and its tree is not in the target".to_owned())
}

fn check_bounds(next: &Task) -> Option<String> {
    let lengths = [
        ("verdicts", next.verdicts.len(), 40),
        ("findings", next.findings.len(), 500),
        ("grants", next.grants.len(), 40),
        ("approvals", next.approvals.len(), 40),
        ("rulings", next.rulings.len(), 40),
        ("required actions", next.required_actions.len(), 200),
    ];
    let long = lengths.into_iter().find(|(_, length, limit)| length > limit);
    long.map(|(what, length, _)| format!("the state holds {length} {what}"))
}
