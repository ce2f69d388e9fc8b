//! Events as people read them: a line, and lines below it.
//!
//! Made from the journal's record: what happened, and the task afterwards. It
//! decides nothing, and nothing is read back from these texts.

mod effects;
mod saving;

use checkrein_shared::api::{EventView, TaskState, Tone};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{
    Attempt, AttemptOutcome, Basis, Checkpoint, Claim, Finding, FindingStatus, IssueRef, JobKind, Judgement, Mismatch,
    Verdict, VerifierOutcome,
};

use crate::lifecycle::{Answer, EventKind, Item, Outcome, Slot, State, Task};

/// How many of a verdict's required actions are shown.
const ACTIONS_MAX: usize = 3;

/// How many lines of one are shown.
const ACTION_LINES_MAX: usize = 12;

/// What a line says, how it is meant, and what stands below it.
struct Line {
    tone: Tone,
    text: String,
    details: Vec<String>,
}

impl Line {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into(), details: Vec::new() }
    }

    fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }
}

/// Makes the view of one event.
pub(crate) fn event_view(
    version: u64,
    at: checkrein_shared::time::Timestamp,
    event: &EventKind,
    task: &Task,
) -> EventView {
    let mut line = line(event, task);
    line.details.extend(rulings(version, task));
    line.details.extend(consequence(event, task));
    EventView {
        task_id: task.id.clone(),
        version,
        at,
        kind: event.name().to_owned(),
        text: line.text,
        tone: line.tone,
        details: line.details,
        state: task_state(&task.state),
        data: serde_json::to_value(event).unwrap_or_default(),
    }
}

/// Makes the view of a task's first event.
pub(crate) fn submitted_view(task: &Task) -> EventView {
    EventView {
        task_id: task.id.clone(),
        version: 1,
        at: task.created_at,
        kind: "submitted".to_owned(),
        text: format!("task `{}` ({}) submitted by {}", task.name, task.id, task.submitted_by),
        tone: Tone::Info,
        details: vec![
            format!("objective: {}", task.spec.objective),
            format!("workspace: {}", task.spec.workspace),
            format!("policy: {} ({})", task.policy.name, task.policy.digest.short()),
        ],
        state: task_state(&task.state),
        data: serde_json::Value::Null,
    }
}

fn line(event: &EventKind, task: &Task) -> Line {
    match event {
        EventKind::LeaseTaken { worker, .. } => lease_taken(worker.as_str(), task),
        EventKind::LeaseExpired { epoch } => {
            Line::new(Tone::Bad, format!("attempt {epoch} was lost: its worker is gone"))
        }
        EventKind::MessageDied { message, reason, .. } => {
            Line::new(Tone::Bad, format!("a message of kind `{message}` could not be handled by anybody: {reason}"))
        }
        EventKind::DispatchTimedOut { .. } => Line::new(Tone::Info, sent_again(task)),
        EventKind::CheckpointWritten { checkpoint, .. } => checkpoint_written(checkpoint, task),
        EventKind::PreconditionsChecked { checks, .. } => saving::conditions(checks),
        EventKind::SavePointTaken { save_point, .. } => saving::taken(save_point),
        EventKind::AttemptEnded { attempt } => attempt_ended(attempt),
        EventKind::VerdictPublished { verdict, .. } => verdict_published(verdict, task),
        EventKind::ReviewTimedOut { round } => Line::new(Tone::Bad, format!("review round {round} took too long")),
        EventKind::TargetDrifted { base, target, paths } => drifted(*base, *target, paths, task),
        EventKind::Amended { by, .. } => Line::new(Tone::Info, format!("{by} amended the task")).with(stale(task)),
        EventKind::Approved { by, note, .. } => Line::new(Tone::Good, format!("{by} approved")).with(note.clone()),
        EventKind::Rejected { by, reason, .. } => Line::new(Tone::Bad, format!("{by} rejected: {reason}")),
        EventKind::ChangesRequested { by, text, .. } => Line::new(Tone::Bad, format!("{by} asks for changes: {text}")),
        EventKind::ItemClaimed { by } => Line::new(Tone::Info, format!("{by} claimed the question")),
        EventKind::ItemExpired { .. } => Line::new(Tone::Bad, "the question expired: nobody answered in time"),
        EventKind::DeadlineMissed { .. } => Line::new(
            Tone::Ask,
            "reminder: the question's deadline passed while nothing was running; it expires in five minutes",
        ),
        EventKind::RedeemRequested { request } => {
            Line::new(Tone::Info, format!("grant {} is used: the target was measured once more", request.grant))
        }
        EventKind::EffectClaimed { request } => effects::claimed(request, task),
        EventKind::EffectSettled { settlement } | EventKind::EffectProbed { settlement } => {
            effects::settled(settlement)
        }
        EventKind::EffectJudged { by, key, done, reason } => {
            let happened = if *done { "happened" } else { "did not happen" };
            Line::new(Tone::Info, format!("{by} says that effect {} {happened}: {reason}", key.short()))
        }
        EventKind::BudgetHit { budget } => Line::new(Tone::Bad, format!("budget used up: {budget}")),
        EventKind::PauseRequested { by } => Line::new(Tone::Info, format!("{by} wants it paused")),
        EventKind::ResumeRequested { by } => Line::new(Tone::Info, format!("{by} lets it go on")),
        EventKind::TakeoverRequested { by, .. } => Line::new(Tone::Info, format!("{by} takes over")),
        EventKind::HandedBack { by, note, .. } => {
            Line::new(Tone::Info, format!("{by} hands it back")).with(note.clone())
        }
        EventKind::CancelRequested { by } => Line::new(Tone::Info, format!("{by} wants it cancelled")),
        EventKind::KeyCompromised { reviewer, since } => {
            Line::new(Tone::Bad, format!("the key of {reviewer} is no longer trusted since {since}")).with(stale(task))
        }
        EventKind::FindingClosed { by, finding, reason } => {
            Line::new(Tone::Info, format!("{by} closed finding {finding}: {reason}"))
        }
    }
}

/// What is sent again, as its message may be lost.
fn sent_again(task: &Task) -> &'static str {
    match &task.state {
        State::Reviewing { .. } => "the reviews that are awaited are asked for again",
        _ => "the job is published again: nobody has taken it",
    }
}

fn lease_taken(worker: &str, task: &Task) -> Line {
    let what = match &task.state {
        State::Running { job, .. } => match job {
            JobKind::Step { step, .. } => format!("step `{step}`"),
            JobKind::Apply { changeset, .. } => format!("applying {}", changeset.id),
            JobKind::Rebase => "putting the change on top of the target as it is now".into(),
            JobKind::Evidence { step } => format!("gathering evidence for step `{step}`"),
        },
        _ => "a job".into(),
    };
    Line::new(Tone::Info, format!("{worker} starts {what} (attempt {})", task.epoch))
}

fn checkpoint_written(checkpoint: &Checkpoint, task: &Task) -> Line {
    let gate = if checkpoint.gate { ", waits for a decision" } else { "" };
    let text = format!("checkpoint {} ({}){gate}", checkpoint.checkpoint_id, checkpoint.trigger.as_str());
    let basis = |claim: &Claim| {
        let word = match claim.basis {
            Basis::Absent => "no evidence",
            Basis::Inferred => "inferred",
            Basis::SelfReported => "self-reported",
            Basis::Verified => "verified",
        };
        format!("claimed: \"{}\" ({word})", claim.text)
    };
    let issue = |i: &IssueRef| format!("open: {}", i.text);
    let claims: Vec<_> = checkpoint.summary.completed.iter().take(5).map(basis).collect();
    // Findings of reviewers are told with their verdicts.
    let own = |i: &&IssueRef| !i.id.starts_with("f-") && !task.findings.iter().any(|f| f.finding.id.as_str() == i.id);
    Line::new(Tone::Info, text)
        .with(claims)
        .with(checkpoint.open_errors.iter().take(5).map(issue))
        .with(checkpoint.open_issues.iter().filter(own).take(5).map(issue))
}

fn attempt_ended(attempt: &Attempt) -> Line {
    match &attempt.outcome {
        AttemptOutcome::StepDone { step, .. } => Line::new(Tone::Good, format!("step `{step}` done")),
        AttemptOutcome::StepFailed { step, error, .. } => {
            Line::new(Tone::Bad, format!("step `{step}` failed")).with([error.text.clone()])
        }
        AttemptOutcome::Applied { changeset, commit, .. } => {
            let commit = commit.as_ref().map(|c| format!("commit {c}"));
            Line::new(Tone::Good, format!("{} applied to the target", changeset.id)).with(commit)
        }
        AttemptOutcome::ApplyConflict { paths, .. } => {
            Line::new(Tone::Bad, "the target changed at the last moment; nothing was applied").with(named(paths))
        }
        AttemptOutcome::RebaseOverlap { paths, .. } => {
            Line::new(Tone::Bad, "target and task changed the same files").with(named(paths))
        }
        AttemptOutcome::Rebased { .. } => Line::new(Tone::Good, "the change stands on top of the target as it is now"),
        AttemptOutcome::Released { reason, .. } => Line::new(Tone::Info, format!("given back for later: {reason}")),
        AttemptOutcome::Stopped { .. } => Line::new(Tone::Info, "the worker stopped"),
    }
}

fn verdict_published(verdict: &Verdict, task: &Task) -> Line {
    let review = task.verdicts.iter().rev().find(|v| v.id == verdict.review_id);
    let name = review.map_or("unknown", |v| v.review.as_str());
    let (tone, word) = match verdict.verdict {
        Judgement::Approved => (Tone::Good, "approved"),
        Judgement::ChangesRequired => (Tone::Bad, "changes required"),
        Judgement::Rejected => (Tone::Bad, "rejected"),
        Judgement::Inconclusive => (Tone::Bad, "could not tell"),
    };
    let stale = review.map_or(&[][..], |v| &v.stale);
    if !stale.is_empty() {
        let text = format!("review `{name}` of {}: {word}, but stale, so it counts for nothing", verdict.checkpoint_id);
        return Line::new(Tone::Bad, text).with(stale.iter().take(5).map(change));
    }
    let verifier = |v: &VerifierOutcome| {
        let outcome = if v.ok { "passed" } else { "failed" };
        format!("verifier `{}` {outcome}, run by the reviewer", v.name)
    };
    Line::new(tone, format!("review `{name}`: {word}"))
        .with(verdict.verifiers.iter().take(10).map(verifier))
        .with(verdict.findings.iter().take(10).map(finding))
        .with(verdict.missing_evidence.iter().take(10).map(|m| format!("missing evidence: {m}")))
        .with(verdict.required_actions.iter().take(ACTIONS_MAX).flat_map(|action| to_do(action)))
}

/// What a reviewer wants done, with the output that it quotes: a person wants to see why, too.
fn to_do(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().take(ACTION_LINES_MAX).map(str::to_owned).collect();
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, "to do: ");
    }
    let hidden = text.lines().count().saturating_sub(ACTION_LINES_MAX);
    if hidden > 0 {
        lines.push(format!("and {hidden} more lines"));
    }
    lines
}

fn finding(finding: &Finding) -> String {
    match finding.status {
        FindingStatus::Fixed => format!("fixed: {}", finding.claim),
        FindingStatus::New | FindingStatus::Open => {
            format!("{} ({}): {}", finding.check, finding.severity.as_str(), finding.claim)
        }
        FindingStatus::Regressed => {
            format!("{} ({}), back again: {}", finding.check, finding.severity.as_str(), finding.claim)
        }
    }
}

fn drifted(base: Digest, target: Digest, paths: &[String], task: &Task) -> Line {
    let moved = format!("base: {} -> {}: what was judged on the old one is stale", base.short(), target.short());
    Line::new(Tone::Bad, "the target changed while this was going on")
        .with(named(paths))
        .with([moved])
        .with(stale(task))
}

fn named(paths: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = paths.iter().take(10).map(|p| format!("changed: {p}")).collect();
    if paths.len() > 10 {
        lines.push(format!("and {} more", paths.len() - 10));
    }
    lines
}

/// The newest round's verdicts that are stale, with what changed.
fn stale(task: &Task) -> Vec<String> {
    let newest = task.verdicts.iter().filter(|v| v.round == task.round && !v.stale.is_empty());
    newest.map(|v| format!("verdict of `{}` is stale: {}", v.review, changes(&v.stale))).collect()
}

fn changes(fields: &[Mismatch]) -> String {
    fields.iter().take(5).map(change).collect::<Vec<_>>().join(", ")
}

fn change(field: &Mismatch) -> String {
    format!("{}: {} -> {}", field.field, shortened(&field.old), shortened(&field.new))
}

/// A digest's first twelve digits; other values whole.
fn shortened(value: &str) -> &str {
    value.strip_prefix("sha256:").and_then(|hex| hex.get(..12)).unwrap_or(value)
}

/// What the rules decided because of this event.
fn rulings(version: u64, task: &Task) -> Vec<String> {
    let of_event = task.rulings.iter().filter(|r| r.version == version);
    let line = |r: &crate::lifecycle::Ruling| {
        let message = r.message.as_ref().map(|m| format!(" - {m}")).unwrap_or_default();
        format!("rule `{}` ({}): {}{message}", r.rule, r.origin, r.action)
    };
    of_event.map(line).collect()
}

fn waits(item: &Item) -> String {
    format!("waits for a person ({}): {}", item.level, item.reason)
}

/// Where the task stands, where that is news.
fn consequence(event: &EventKind, task: &Task) -> Option<String> {
    match &task.state {
        State::Queued { job: JobKind::Apply { grant, .. } }
            if !matches!(event, EventKind::LeaseExpired { .. } | EventKind::DispatchTimedOut { .. }) =>
        {
            Some(format!("grant {grant} issued for exactly this change"))
        }
        State::Waiting { item } => Some(waits(item)),
        State::Reviewing { slots } if waits_for_people(slots) => task.items().first().map(|item| waits(item)),
        State::Held { by, folder, .. } => Some(format!("held by {by}; the files are in {folder}")),
        State::Blocked { reason, .. } => Some(format!("blocked: {reason}")),
        State::Done { outcome } => Some(match outcome {
            Outcome::Completed {} => "completed".into(),
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::Cancelled { by } => format!("cancelled by {by}"),
        }),
        _ => None,
    }
}

/// Whether nothing but people's answers is awaited any more.
pub(crate) fn waits_for_people(slots: &[Slot]) -> bool {
    let mut awaited = slots.iter().filter(|s| s.blocking && s.answer == Answer::Awaited).peekable();
    awaited.peek().is_some() && awaited.all(|s| s.item.is_some())
}

/// The state in a word for people's tools.
pub(crate) fn task_state(state: &State) -> TaskState {
    match state {
        State::Queued { .. } => TaskState::Queued,
        State::Running { .. } => TaskState::Running,
        State::Reviewing { slots } if waits_for_people(slots) => TaskState::Waiting,
        State::Reviewing { .. } => TaskState::Reviewing,
        State::Waiting { .. } => TaskState::Waiting,
        State::Held { .. } => TaskState::Held,
        State::Paused { .. } => TaskState::Paused,
        State::Blocked { .. } => TaskState::Blocked,
        State::Cancelling { .. } => TaskState::Cancelling,
        State::Done { outcome } => match outcome {
            Outcome::Completed {} => TaskState::Completed,
            Outcome::Failed { .. } => TaskState::Failed,
            Outcome::Cancelled { .. } => TaskState::Cancelled,
        },
    }
}
