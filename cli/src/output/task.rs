//! A task, and what waits for a person, as lines.

use checkrein_shared::api::{Epitaph, InboxItem, ReviewView, TaskState, TaskSummary, TaskView, Tone};
use checkrein_shared::records::{Judgement, SourceRef};
use checkrein_shared::time::Timestamp;

use super::facts::{ago, columns, left, shortened};
use super::{Output, shown};

/// How a state is meant.
pub(crate) fn tone(state: TaskState) -> Tone {
    match state {
        TaskState::Completed => Tone::Good,
        TaskState::Waiting | TaskState::Held | TaskState::Paused => Tone::Ask,
        TaskState::Blocked | TaskState::Failed | TaskState::Cancelled | TaskState::Cancelling => Tone::Bad,
        TaskState::Queued | TaskState::Running | TaskState::Reviewing => Tone::Info,
    }
}

/// The list of tasks.
pub(crate) fn tasks_lines(out: &Output, tasks: &[TaskSummary], now: Timestamp) -> Vec<String> {
    let rows: Vec<[String; 5]> = tasks
        .iter()
        .map(|task| {
            [
                task.id.to_string(),
                task.state.as_str().to_owned(),
                ago(now, task.updated_at),
                shown(&task.name).into_owned(),
                shown(&task.detail).into_owned(),
            ]
        })
        .collect();
    let lines = columns(&rows);
    tasks.iter().zip(lines).map(|(task, line)| out.toned(tone(task.state), &line)).collect()
}

/// A task, whole.
pub(crate) fn task_lines(out: &Output, task: &TaskView, now: Timestamp) -> Vec<String> {
    let summary = &task.summary;
    let state = out.toned(tone(summary.state), summary.state.as_str());
    let mut lines = vec![
        format!("{}  {}", out.bold(&shown(&summary.name)), out.dim(summary.id.as_str())),
        format!("  state       {state}: {}", shown(&summary.detail)),
        format!("  objective   {}", shown(&task.objective)),
        format!("  workspace   {}", shown(&task.workspace)),
        format!("  policy      {} ({})", shown(&task.policy.name), shortened(&task.policy.digest.to_string())),
        format!("  progress    attempt {}, round {}, {}", task.epoch, task.round, ago(now, summary.updated_at)),
    ];
    let steps = task.steps.iter().map(|step| format!("{} ({})", shown(&step.id), shown(&step.state)));
    lines.push(format!("  steps       {}", steps.collect::<Vec<_>>().join(", ")));
    if let Some(head) = &task.head {
        lines.push(format!("  checkpoint  {} ({})", head.id, shortened(&head.hash.to_string())));
    }
    for changeset in &task.applied {
        lines.push(format!("  applied     {} ({})", changeset.id, shortened(&changeset.hash.to_string())));
    }
    if let Some(folder) = &task.held_in {
        lines.push(format!("  files in    {}", shown(folder)));
    }
    lines.extend(review_lines(out, &task.reviews));
    lines.extend(finding_lines(out, task));
    if let Some(item) = &task.item {
        lines.push(String::new());
        lines.extend(inbox_lines(out, std::slice::from_ref(item), now));
    }
    lines
}

/// What is left of a task that was pruned.
pub(crate) fn epitaph_lines(out: &Output, epitaph: &Epitaph, now: Timestamp) -> Vec<String> {
    let state = out.toned(tone(epitaph.outcome), epitaph.outcome.as_str());
    let mut lines = vec![
        format!("{}  {}", out.bold(&shown(&epitaph.name)), out.dim(epitaph.id.as_str())),
        format!("  state       {state}: {}", shown(&epitaph.detail)),
        format!("  ended       {} ({})", epitaph.ended_at, ago(now, epitaph.ended_at)),
        format!(
            "  pruned      {}: the policy's `retention` kept it no longer; evidence, files and history are gone",
            epitaph.pruned_at
        ),
    ];
    if let (Some(checkpoint), Some(hash)) = (&epitaph.checkpoint, epitaph.checkpoint_hash) {
        lines.push(format!("  checkpoint  {checkpoint} ({hash})"));
    }
    lines.push(format!("  history     {} records, the last with the hash {}", epitaph.records, epitaph.last_hash));
    lines
}

fn review_lines(out: &Output, reviews: &[ReviewView]) -> Vec<String> {
    if reviews.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["  reviews".to_owned()];
    for review in reviews {
        let (word, tone) = match (review.verdict, review.timed_out) {
            (Some(Judgement::Approved), _) if review.current => ("approved", Tone::Good),
            (Some(judgement), _) => (judgement.as_str(), Tone::Bad),
            (None, true) => ("timed out", Tone::Bad),
            (None, false) => ("awaited", Tone::Info),
        };
        let currency = if review.verdict.is_none() {
            String::new()
        } else if review.current {
            ", current".to_owned()
        } else {
            let fields: Vec<&str> = review.stale.iter().map(|change| change.field.as_str()).collect();
            format!(", stale (changed: {}),", shown(&fields.join(", ")))
        };
        let line = format!("round {} {}: {word}{currency}", review.round, shown(&review.review));
        lines.push(format!("    {} {}", out.toned(tone, &line), out.dim(review.checkpoint.as_str())));
    }
    lines
}

/// What changed, a field a line.
pub(super) fn stale_lines(
    out: &Output,
    fields: &[checkrein_shared::records::Mismatch],
    indent: &str,
) -> impl Iterator<Item = String> {
    let line = |field: &checkrein_shared::records::Mismatch| {
        let change = format!("{}: {} -> {}", field.field, shortened(&shown(&field.old)), shortened(&shown(&field.new)));
        format!("{indent}{}", out.toned(Tone::Bad, &change))
    };
    fields.iter().map(line).collect::<Vec<_>>().into_iter()
}

fn finding_lines(out: &Output, task: &TaskView) -> Vec<String> {
    if task.findings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["  open findings".to_owned()];
    for finding in &task.findings {
        let severity = out.toned(Tone::Bad, finding.severity.as_str());
        lines.push(format!("    {severity} {}: {}", shown(&finding.check), shown(&finding.claim)));
        let places = finding.source_refs.iter().map(place).collect::<Vec<_>>().join(", ");
        lines.push(format!("      {}", out.dim(&format!("{} {}", finding.id, shown(&places)))));
    }
    lines
}

fn place(reference: &SourceRef) -> String {
    match reference {
        SourceRef::Evidence(reference) => reference.to_string(),
        SourceRef::File { path, line: Some(line), .. } => format!("{path}:{line}"),
        SourceRef::File { path, line: None, .. } => path.clone(),
        SourceRef::Checkpoint(field) => format!("checkpoint field {field}"),
    }
}

/// What waits for a person, with the commands that answer it.
pub(crate) fn inbox_lines(out: &Output, items: &[InboxItem], now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    for item in items {
        let deadline = item.deadline.map_or_else(String::new, |at| format!(", {}", left(now, at)));
        let head =
            format!("? {} ({}) asks {}: {}", shown(&item.task), item.task_id, shown(&item.level), shown(&item.reason));
        lines.push(out.toned(Tone::Ask, &head));
        lines.push(format!("    opened {}{deadline}", ago(now, item.opened_at)));
        if let Some(checkpoint) = &item.checkpoint {
            lines.push(format!("    about {} ({})", checkpoint.id, shortened(&checkpoint.hash.to_string())));
        }
        if let Some(by) = &item.claimed_by {
            lines.push(format!("    {} looks after it", shown(by)));
        }
        if item.approvers_needed > 1 {
            let given = item.approved_by.iter().map(|by| shown(by).into_owned()).collect::<Vec<_>>().join(", ");
            lines.push(format!("    needs {} approvals; given by: {given}", item.approvers_needed));
        }
        lines.extend(stale_lines(out, &item.stale, "    changed since: "));
    }
    lines
}
