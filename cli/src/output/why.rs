//! Why a task is where it is: decisions, stale verdicts, and claims with what
//! they rest on. Nothing is shown as more than its basis.

use checkrein_shared::api::{TaskView, Tone};
use checkrein_shared::records::{Basis, CheckOutcome, Checkpoint, Claim, Mismatch};

use super::facts::{clock, shortened};
use super::task::stale_lines;
use super::{Output, shown};

/// The lines of `show --why` below the task itself.
pub(crate) fn why_lines(out: &Output, task: &TaskView, chain: &[Checkpoint]) -> Vec<String> {
    let mut lines = vec![String::new(), out.bold("Decisions, oldest first")];
    if task.decisions.is_empty() {
        lines.push("  none yet".to_owned());
    }
    for decision in &task.decisions {
        let tone = match decision.action.as_str() {
            "continue" => Tone::Good,
            "escalate" => Tone::Ask,
            "warn" | "request_evidence" => Tone::Info,
            _ => Tone::Bad,
        };
        let action = out.toned(tone, &shown(&decision.action));
        lines.push(format!("  {}  {action}  by rule `{}`", clock(decision.at), shown(&decision.rule)));
        let policy = shortened(&decision.policy.to_string());
        lines.push(format!("      at {}, policy {policy}", shown(&decision.origin)));
        lines.extend(decision.message.as_ref().map(|message| format!("      {}", shown(message))));
        for (name, value) in &decision.values {
            lines.push(format!("      {} = {}", shown(name), shown(value)));
        }
    }
    lines.extend(conditions(out, task));
    lines.extend(stale_verdicts(out, task));
    lines.extend(claims(out, chain));
    lines
}

fn conditions(out: &Output, task: &TaskView) -> Vec<String> {
    if task.conditions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), out.bold("The conditions of the newest attempt")];
    for check in &task.conditions {
        let (word, tone, why) = match &check.outcome {
            CheckOutcome::Pass {} => ("holds", Tone::Good, None),
            CheckOutcome::Fail { why } => ("fails", Tone::Bad, Some(why)),
            CheckOutcome::Explained { why } => ("explained", Tone::Info, Some(why)),
        };
        let why = why.map_or_else(String::new, |why| format!(": {}", shown(why)));
        lines.push(format!("  {:<22} {}{why}", check.condition.as_str(), out.toned(tone, word)));
    }
    lines
}

fn stale_verdicts(out: &Output, task: &TaskView) -> Vec<String> {
    let stale: Vec<_> = task.reviews.iter().filter(|review| !review.stale.is_empty()).collect();
    if stale.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), out.bold("Verdicts that are stale, and what changed")];
    let mut said: Option<&[Mismatch]> = None;
    for review in stale {
        let verdict = review.verdict.map_or("none", |judgement| judgement.as_str());
        lines.push(format!("  round {} {} on {}: {verdict}", review.round, shown(&review.review), review.checkpoint));
        // What makes one verdict stale mostly makes its neighbours stale too.
        if said == Some(review.stale.as_slice()) {
            lines.push(format!("      {}", out.dim("the same changes")));
        } else {
            lines.extend(stale_lines(out, &review.stale, "      "));
        }
        said = Some(&review.stale);
    }
    lines
}

fn claims(out: &Output, chain: &[Checkpoint]) -> Vec<String> {
    let mut lines = vec![String::new(), out.bold("Claims, and what they rest on")];
    let mut any = false;
    for checkpoint in chain {
        let claims = checkpoint.summary.completed.iter().chain(&checkpoint.summary.next);
        for (index, claim) in claims.enumerate() {
            any = true;
            if index == 0 {
                lines.push(format!("  {} ({})", checkpoint.checkpoint_id, checkpoint.trigger.as_str()));
            }
            lines.extend(claim_lines(out, claim));
        }
    }
    if !any {
        lines.push("  none".to_owned());
    }
    lines
}

/// A claim and its basis.
pub(super) fn claim_lines(out: &Output, claim: &Claim) -> Vec<String> {
    let (word, tone) = match claim.basis {
        Basis::Verified => ("verified: a reviewer ran it", Tone::Good),
        Basis::SelfReported => ("self-reported: the worker's own evidence", Tone::Info),
        Basis::Inferred => ("inferred from something else", Tone::Info),
        Basis::Absent => ("no evidence", Tone::Bad),
    };
    let refs = claim.refs.iter().map(|reference| shown(reference.as_str()).into_owned()).collect::<Vec<_>>().join(", ");
    let refs = if refs.is_empty() { String::new() } else { format!(" ({refs})") };
    vec![format!("    \"{}\"", shown(&claim.text)), format!("      {}{refs}", out.toned(tone, word))]
}
