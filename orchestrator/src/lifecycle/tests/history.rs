//! A long task's state stays small, and nothing of its past is lost.

use std::collections::BTreeMap;

use checkrein_shared::records::Judgement;
use serde_json::Value;

use super::fixture::{World, finding, published, written};
use crate::lifecycle::{Effect, EventKind, GRANT_TABLE, RULING_TABLE, Reason, State, VERDICT_TABLE};

/// How large a long-lived ordinary task's state may get.
const STATE_BYTES_MAX: usize = 16 << 10;

const POLICY: &str = r#"
version: 1
verifiers:
  unit: {run: [make, test], timeout: 1m, network: none, carry: [], from_base: [], covers: ["**"]}
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true}
- {name: second, kind: command, command: [judge], on: [changeset.before_apply], blocking: true}
rules:
- {id: again, on: [round], when: "round.rejections > 0", action: retry, limit: 900, then: block}
- {id: ok, on: [round], when: "round.complete", action: continue}
budgets: {task: {rounds: 2000}}
"#;

/// Both reviews of the open round are answered; returns the ids.
fn judge(world: &mut World, judgement: Judgement, rows: &mut BTreeMap<(String, String), Value>) -> Vec<String> {
    let State::Reviewing { slots } = world.task.state.clone() else { panic!("{:?}", world.task.state) };
    let bindings = world.task.subject.clone().unwrap().bindings;
    let mut ids = Vec::new();
    for slot in slots {
        let findings = if judgement.is_negative() { vec![finding("f-1")] } else { Vec::new() };
        let mut verdict = world.verdict_of(&slot.id, bindings.clone(), judgement, findings);
        if slot.review == "second" {
            verdict.reviewer.kind = checkrein_shared::records::ReviewerType::Command;
        }
        ids.push(slot.id.to_string());
        take(world, |_| published(verdict), rows);
    }
    ids
}

/// Takes an event and keeps the rows that it writes; none is written twice.
fn take(world: &mut World, event: impl FnOnce(&World) -> EventKind, rows: &mut BTreeMap<(String, String), Value>) {
    let event = event(world);
    world.take(event);
    for effect in world.effects.clone() {
        if let Effect::PutRow { table, key, value } = effect {
            assert!(rows.insert((table, key.clone()), value).is_none(), "{key} twice");
        }
    }
}

fn size(world: &World) -> usize {
    serde_json::to_vec(&world.task).unwrap().len()
}

#[test]
fn the_state_of_a_long_task_stays_small_and_its_past_lies_in_rows() {
    let mut world = World::with_policy(&["fix"], POLICY);
    let (mut rows, mut ids, mut sizes) = (BTreeMap::new(), Vec::new(), Vec::new());
    for round in 0..150u32 {
        take(&mut world, |w| w.lease(), &mut rows);
        take(&mut world, |w| w.gate("fix", "base", &format!("tree-{round}")), &mut rows);
        ids.extend(judge(&mut world, Judgement::ChangesRequired, &mut rows));
        sizes.push(size(&world));
    }
    assert!(sizes[149] <= STATE_BYTES_MAX, "{} bytes", sizes[149]);
    assert!(sizes[149] <= sizes[30] + 200, "{} after 30 rounds, {} after 150", sizes[30], sizes[149]);
    // Every verdict and every decision is somewhere, once.
    let of = |table: &str| rows.keys().filter(|(t, _)| t == table).map(|(_, key)| key.clone()).collect::<Vec<_>>();
    let mut known: Vec<String> = of(VERDICT_TABLE);
    known.extend(world.task.verdicts.iter().map(|v| v.id.to_string()));
    known.sort();
    ids.sort();
    assert_eq!(known, ids);
    assert_eq!(of(RULING_TABLE).len() + world.task.rulings.len(), 150);
    // One that comes twice counts once, also where it is history.
    let old = rows.iter().rev().find(|((table, _), _)| table == VERDICT_TABLE).unwrap().1;
    let old: crate::lifecycle::VerdictState = serde_json::from_value(old.clone()).unwrap();
    let again = world.verdict_of(&old.id, old.bindings, Judgement::Rejected, vec![finding("f-2")]);
    assert_eq!(world.ignored(published(again)), Reason::Duplicate);
}

#[test]
fn grants_that_can_still_be_used_stay_and_spent_ones_become_rows() {
    let steps: Vec<String> = (0..12).map(|n| format!("s-{n}")).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut world = World::with_policy(&steps, POLICY);
    let mut rows = BTreeMap::new();
    let mut base = "base".to_owned();
    for (number, step) in steps.iter().enumerate() {
        take(&mut world, |w| w.lease(), &mut rows);
        let tree = format!("tree-{number}");
        let checkpoint = world.checkpoint(checkrein_shared::records::Trigger::ChangesetBeforeApply, true, &base, &tree);
        take(&mut world, |_| written(checkpoint, Some(step)), &mut rows);
        judge(&mut world, Judgement::Approved, &mut rows);
        assert!(world.task.open_grant().is_some());
        take(&mut world, |w| w.lease(), &mut rows);
        take(&mut world, |w| w.redeem(&base), &mut rows);
        take(&mut world, |w| w.applied(&tree), &mut rows);
        base = tree;
    }
    assert_eq!(world.task.applied.len(), 12);
    assert!(world.task.grants.len() <= 3, "{}", world.task.grants.len());
    let grants = rows.keys().filter(|(table, _)| table == GRANT_TABLE).count();
    assert_eq!(grants + world.task.grants.len(), 12);
    assert!(size(&world) <= STATE_BYTES_MAX, "{} bytes", size(&world));
}
