//! The effects ledger, as lines.

use checkrein_shared::api::Tone;
use checkrein_shared::records::{EffectClass, EffectEntry, EffectStatus, Witness};
use checkrein_shared::time::Timestamp;

use super::facts::{ago, clock, columns, left, shortened};
use super::{Output, shown};
use crate::context::quoted;

fn class(class: EffectClass) -> &'static str {
    match class {
        EffectClass::ReadOnly => "read only",
        EffectClass::Effectful => "effectful",
        EffectClass::Irreversible => "irreversible",
    }
}

fn tone(status: &EffectStatus) -> Tone {
    match status {
        EffectStatus::Done { .. } | EffectStatus::Settled { done: true, .. } => Tone::Good,
        EffectStatus::Proposed { .. } | EffectStatus::Claimed { .. } => Tone::Info,
        EffectStatus::Failed { .. } | EffectStatus::Settled { done: false, .. } => Tone::Bad,
        EffectStatus::Unknown { .. } => Tone::Ask,
    }
}

fn since(status: &EffectStatus) -> Timestamp {
    match status {
        EffectStatus::Proposed { since } | EffectStatus::Unknown { since, .. } => *since,
        EffectStatus::Claimed { at, .. }
        | EffectStatus::Done { at, .. }
        | EffectStatus::Failed { at, .. }
        | EffectStatus::Settled { at, .. } => *at,
    }
}

/// A command as somebody would type it.
fn command(argv: &[String]) -> String {
    shown(&argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")).into_owned()
}

/// The list.
pub(crate) fn effects_lines(out: &Output, entries: &[EffectEntry], now: Timestamp) -> Vec<String> {
    let row = |entry: &EffectEntry| {
        [
            entry.key.short(),
            entry.task_id.to_string(),
            entry.status.name().to_owned(),
            ago(now, since(&entry.status)),
            class(entry.class).to_owned(),
            shown(&entry.call.tool).into_owned(),
        ]
    };
    let lines = columns(&entries.iter().map(row).collect::<Vec<_>>());
    entries.iter().zip(lines).map(|(entry, line)| out.toned(tone(&entry.status), &line)).collect()
}

/// One effect, whole. `settle` begins the command that settles it.
pub(crate) fn effect_lines(out: &Output, entry: &EffectEntry, settle: &str, now: Timestamp) -> Vec<String> {
    let task = &entry.task_id;
    let status = out.toned(tone(&entry.status), entry.status.name());
    let mut lines = vec![
        format!("{}  {}", out.bold("effect"), entry.key.to_hex()),
        format!("  task        {task}, step {}", shown(entry.call.step.as_str())),
        format!("  status      {status}{}", explained(entry, now)),
        format!("  what        {}: {}", class(entry.class), shown(&entry.call.tool)),
    ];
    if !entry.call.argv().is_empty() {
        lines.push(format!("  command     {}", command(entry.call.argv())));
    }
    lines.push(format!("  call        {} (command, folder and environment)", shortened(&entry.call_hash.to_string())));
    let names = entry.call.environment.keys().map(|name| shown(name)).collect::<Vec<_>>().join(" ");
    lines.push(format!("  variables   {names}"));
    lines.push(format!("  claimed     {} times, may take {}", entry.claims, entry.time_limit));
    if let Some(allowed) = &entry.allowed_by {
        let people = allowed.approved_by.iter().map(|by| shown(by)).collect::<Vec<_>>().join(", ");
        let by = if people.is_empty() { "reviewers".into() } else { people };
        lines.push(format!("  allowed by  {by}, on checkpoint {}", shortened(&allowed.checkpoint_hash.to_string())));
    }
    if let Some(dry) = &entry.dry_run_output {
        lines.push(format!("  dry run     checkrein evidence get {task} {}", quoted(dry.as_str())));
    }
    if let Some(probe) = &entry.handling.probe {
        lines.push(format!("  probe       {}", command(probe)));
    }
    if let Some(compensate) = &entry.handling.compensate {
        let when = if entry.status.is_done() { "" } else { " (where it happened)" };
        lines.push(format!("  undo it     {}{when}", command(compensate)));
    }
    if matches!(entry.status, EffectStatus::Unknown { .. }) {
        lines.push(format!("  settle it   {settle} --done --reason '..'"));
        lines.push(format!("              {settle} --not-done --reason '..'"));
    }
    lines
}

fn explained(entry: &EffectEntry, now: Timestamp) -> String {
    let at = ago(now, since(&entry.status));
    match &entry.status {
        EffectStatus::Proposed { .. } => format!(", waits for its gate since {at}; it never started"),
        EffectStatus::Claimed { worker, epoch, .. } => format!(" by {worker} in attempt {epoch}, {at}"),
        EffectStatus::Done { by: Witness::Worker(worker), .. } => format!(", {at}, seen by {worker}"),
        EffectStatus::Done { by: Witness::Probe(_), .. } => format!(", {at}, as its probe says"),
        EffectStatus::Failed { why, .. } => format!(", {at}: {}", shown(why)),
        EffectStatus::Unknown { why, probe_after, probe_failed, .. } => {
            let probe = match (&entry.handling.probe, probe_failed) {
                (None, _) => String::new(),
                (Some(_), true) => "; its probe could not tell".to_owned(),
                (Some(_), false) if *probe_after > now => {
                    format!(
                        "; a probe's `not done` counts at {} UTC ({})",
                        clock(*probe_after),
                        left(now, *probe_after)
                    )
                }
                (Some(_), false) => "; its probe is asked next".to_owned(),
            };
            format!(", {at}: {}{probe}", shown(why))
        }
        EffectStatus::Settled { by, reason, .. } => format!(", {at}, says {}: {}", shown(by), shown(reason)),
    }
}

/// What a task that did not end well has done outside, and how to undo it.
pub(crate) fn left_behind_lines(out: &Output, entries: &[EffectEntry]) -> Vec<String> {
    let left: Vec<&EffectEntry> = entries.iter().filter(|entry| entry.status.may_have_happened()).collect();
    let mut lines = Vec::new();
    if !left.is_empty() {
        lines.push(out.toned(Tone::Bad, "  done outside, and still there:"));
    }
    for entry in left {
        let perhaps = if entry.status.is_done() { "" } else { "nobody knows whether it happened; if so, " };
        let undo = match &entry.handling.compensate {
            Some(argv) => format!("undo it with: {}", command(argv)),
            None => "nothing is known that undoes it".to_owned(),
        };
        lines.push(format!("    {} ({}): {perhaps}{undo}", shown(&entry.call.tool), entry.key.short()));
    }
    lines
}
