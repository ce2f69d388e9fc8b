//! Every pair of state and event, against the table in `docs/lifecycle.md`.

use std::collections::BTreeMap;

use checkrein_shared::records::{AttemptOutcome, Judgement, Trigger};
use checkrein_shared::time::Timestamp;

use super::effects;
use super::fixture::{World, digest, finding, published, spec, written};
use crate::lifecycle::{Decision, EventKind, State};

const DOC: &str = include_str!("../../../../docs/lifecycle.md");

/// A task in each state of the table, by its letter.
fn states() -> Vec<(&'static str, World)> {
    let new = || {
        let mut world = World::new(&["work"]);
        // As after an earlier attempt: there is a scratch, so that drift matters.
        (world.task.base, world.task.tree) = (Some(digest("base")), Some(digest("tree")));
        effects::remembered(&mut world);
        world
    };
    let by = || "ada".to_owned();
    vec![
        ("Q", new()),
        ("R", new().running().clone()),
        ("V", new().reviewing().clone()),
        ("W", new().waiting().clone()),
        ("H", new().reviewing().take(takeover()).clone()),
        ("P", new().take(EventKind::PauseRequested { by: by() }).clone()),
        ("B", rejected(new().waiting())),
        ("X", new().running().take(EventKind::CancelRequested { by: by() }).clone()),
        ("T", new().take(EventKind::CancelRequested { by: by() }).clone()),
    ]
}

fn takeover() -> EventKind {
    EventKind::TakeoverRequested { by: "ada".into(), folder: "/tmp/t".into() }
}

fn rejected(world: &mut World) -> World {
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Rejected { by: "ada".into(), hash, reason: "no".into() }).clone()
}

/// The events of the table, by the name of their row, as they would come in a given state.
fn events(world: &World) -> Vec<(&'static str, EventKind)> {
    let mut reviewed = World::new(&["work"]);
    reviewed.reviewing();
    let current = match &world.task.state {
        State::Reviewing { .. } => world.verdict(Judgement::ChangesRequired, vec![finding("f-1")]),
        _ => reviewed.verdict(Judgement::ChangesRequired, vec![finding("f-1")]),
    };
    let mut old = reviewed.verdict(Judgement::Rejected, vec![finding("f-2")]);
    old.bindings.base = digest("older");
    let hash = world.task.items().first().map_or(digest("nothing"), |i| i.hash);
    let by = || "ada".to_owned();
    let item = world.task.id.escalation(1);
    vec![
        ("LeaseTaken", world.lease()),
        ("LeaseExpired", EventKind::LeaseExpired { epoch: world.task.epoch }),
        (
            "MessageDied",
            EventKind::MessageDied { message: "job".into(), epoch: world.task.epoch, reason: "rejected".into() },
        ),
        ("DispatchTimedOut", EventKind::DispatchTimedOut { epoch: world.task.epoch }),
        ("Checkpoint, no gate", written(world.checkpoint(Trigger::PlanSubgraphDone, false, "base", "tree"), None)),
        ("Checkpoint, gate", world.gate("work", "base", "tree")),
        ("PreconditionsChecked", world.conditions()),
        ("SavePointTaken", world.saved("work", "state", "saved tree")),
        ("AttemptEnded, failed", world.step_failed("work", "boom")),
        (
            "AttemptEnded, released",
            world.ended(AttemptOutcome::Released {
                after: checkrein_shared::time::Span::from_secs(1),
                reason: "busy".into(),
            }),
        ),
        ("Verdict, current veto", published(current)),
        ("Verdict, not current", published(old)),
        ("ReviewTimeout", EventKind::ReviewTimedOut { round: world.task.round }),
        ("Drift", world.drift("moved")),
        ("Amended", EventKind::Amended { by: by(), spec: Some(Box::new(spec("another"))), plan: None }),
        ("Approve", EventKind::Approved { by: by(), hash, note: None }),
        ("Reject", EventKind::Rejected { by: by(), hash, reason: "no".into() }),
        ("RequestChanges", EventKind::ChangesRequested { by: by(), hash, text: "more".into() }),
        ("Claim", EventKind::ItemClaimed { by: by() }),
        ("ItemDeadline", EventKind::ItemExpired { item, stage: 0 }),
        ("EffectClaimed", effects::claimed(world)),
        ("EffectSettled", effects::settled(world)),
        ("EffectProbed", effects::probed(world)),
        ("EffectJudged", effects::judged()),
        ("BudgetHit", EventKind::BudgetHit { budget: "wall".into() }),
        ("Pause", EventKind::PauseRequested { by: by() }),
        ("Resume", EventKind::ResumeRequested { by: by() }),
        ("Takeover", takeover()),
        (
            "HandBack",
            EventKind::HandedBack { by: by(), tree: digest("edited"), started_from: digest("tree"), note: None },
        ),
        ("Cancel", EventKind::CancelRequested { by: by() }),
        (
            "KeyCompromised",
            EventKind::KeyCompromised { reviewer: "reviewer-1".parse().unwrap(), since: Timestamp::from_millis(0) },
        ),
        (
            "FindingClosed",
            EventKind::FindingClosed { by: by(), finding: "f-none".parse().unwrap(), reason: "checked".into() },
        ),
    ]
}

fn letter(state: &State) -> &'static str {
    match state {
        State::Queued { .. } => "Q",
        State::Running { .. } => "R",
        State::Reviewing { .. } => "V",
        State::Waiting { .. } => "W",
        State::Held { .. } => "H",
        State::Paused { .. } => "P",
        State::Blocked { .. } => "B",
        State::Cancelling { .. } => "X",
        State::Done { .. } => "T",
    }
}

/// The cells of the documented table: row -> column -> code.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut rows = BTreeMap::new();
    let mut columns: Vec<String> = Vec::new();
    for line in DOC.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
        if cells[0] == "event" {
            // Other tables of the page begin with `event` too; this one has a column for each state.
            columns = if cells.len() == 10 { cells[1..].to_vec() } else { Vec::new() };
        } else if !columns.is_empty() && columns.len() + 1 == cells.len() && !cells[0].starts_with("---") {
            let codes = cells[1..].iter().map(|c| c.split_whitespace().next().unwrap_or("").to_owned());
            rows.insert(cells[0].clone(), columns.iter().cloned().zip(codes).collect());
        }
    }
    rows
}

#[test]
fn every_pair_of_state_and_event_is_as_documented() {
    let table = documented();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (column, world) in states() {
        assert_eq!(letter(&world.task.state), column, "the fixture leads to the state");
        for (row, event) in events(&world) {
            let code = match world.peek(event) {
                Ok(Decision::Advance { next, .. }) => letter(&next.state).to_owned(),
                Ok(Decision::Ignore(_)) => ".".to_owned(),
                Err(_) => "!".to_owned(),
            };
            let expected = table.get(row).and_then(|r| r.get(column)).cloned().unwrap_or_else(|| "missing".into());
            if code != expected {
                wrong.push(format!("{row} in {column}: documented `{expected}`, decided `{code}`"));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, 9 * table.len(), "every documented row is tried in every state");
}

#[test]
fn deciding_twice_gives_the_same() {
    for (_, world) in states() {
        for (row, event) in events(&world) {
            assert_eq!(world.peek(event.clone()), world.peek(event), "{row}");
        }
    }
}

#[test]
fn every_state_survives_the_journal() {
    for (column, world) in states() {
        let text = checkrein_shared::json::canonical(&world.task).unwrap();
        let back: crate::lifecycle::Task = checkrein_shared::json::parse_as("task", &text).unwrap();
        assert_eq!(back, world.task, "{column}");
        for (row, event) in events(&world) {
            let text = checkrein_shared::json::canonical(&event).unwrap();
            let back: EventKind = checkrein_shared::json::parse_as("event", &text).unwrap();
            assert_eq!(back, event, "{row}");
        }
    }
}
