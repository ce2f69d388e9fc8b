//! Save points and the conditions of an attempt, as lines.

use checkrein_shared::api::Tone;
use checkrein_shared::records::{CheckOutcome, Checked, SavePoint};

use super::Line;

pub(super) fn taken(saved: &SavePoint) -> Line {
    Line::new(Tone::Info, format!("step `{}` saved its progress, with the files as they are", saved.step))
}

pub(super) fn conditions(checks: &[Checked]) -> Line {
    let failed = checks.iter().filter(|check| matches!(check.outcome, CheckOutcome::Fail { .. })).count();
    if failed > 0 {
        let text = format!("{failed} of {} conditions for the attempt do not hold", checks.len());
        return Line::new(Tone::Bad, text).with(checks.iter().filter_map(said));
    }
    Line::new(Tone::Info, format!("the {} conditions for the attempt were looked at", checks.len()))
        .with(checks.iter().filter_map(said))
}

/// What there is to say about a condition that does not simply hold.
fn said(check: &Checked) -> Option<String> {
    let name = check.condition.as_str();
    match &check.outcome {
        CheckOutcome::Pass {} => None,
        CheckOutcome::Fail { why } => Some(format!("{name} fails: {why}")),
        CheckOutcome::Explained { why } => Some(format!("{name}: {why}")),
    }
}
