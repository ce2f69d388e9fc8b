//! A target that changes while a task is under way.

use checkrein_shared::records::{AttemptOutcome, Judgement};

use super::fixture::{World, digest, published};
use crate::lifecycle::{Effect, EventKind, Reason, State, VERDICT_TABLE, VerdictState};

#[test]
fn drift_during_review_makes_verdicts_stale_rebases_and_reviews_again() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let on_the_way = world.verdict(Judgement::Approved, Vec::new());
    world.take(world.drift("moved"));
    assert_eq!((world.state(), world.job()), ("queued", "rebase"));
    // The verdict arrives after all: it stays visible, with what changed, and authorises nothing.
    world.take(published(on_the_way));
    let stale = &world.task.verdicts[0].stale;
    let (old, new) = (digest("base").to_string(), digest("moved").to_string());
    assert!(stale.iter().any(|m| m.field == "base" && m.old == old && m.new == new), "{stale:?}");
    assert!(world.task.grants.is_empty());
    world.running();
    world.take(world.gate("work", "moved", "tree on moved"));
    assert_eq!((world.state(), world.task.drifted), ("reviewing", None));
    world.judged(Judgement::Approved);
    assert_eq!(world.job(), "apply");
}

#[test]
fn stale_is_sticky_even_when_the_target_comes_back() {
    let mut world = World::new(&["work"]);
    world.granted();
    world.take(world.drift("moved")).running();
    // A, B, A: the target is again what the first verdict was given for.
    world.take(world.gate("work", "base", "tree"));
    // The new round inherited it anew, so the first is history: stale for ever.
    assert_eq!(world.task.verdicts.len(), 1);
    let inherited = world.task.verdicts[0].inherited_from.clone().unwrap();
    let row = world.effects.iter().find_map(|effect| match effect {
        Effect::PutRow { table, key, value } if table == VERDICT_TABLE && *key == inherited.to_string() => Some(value),
        _ => None,
    });
    let first: VerdictState = serde_json::from_value(row.unwrap().clone()).unwrap();
    assert!(!first.stale.is_empty());
}

#[test]
fn drift_before_a_gate_is_rebased_before_the_review() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired).running();
    world.take(world.drift("moved"));
    world.take(world.gate("work", "base", "tree-2"));
    assert_eq!(world.job(), "rebase");
}

#[test]
fn reports_about_an_older_base_or_the_same_target_change_nothing() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let old = EventKind::TargetDrifted { base: digest("older"), target: digest("moved"), paths: Vec::new() };
    assert_eq!(world.ignored(old), Reason::Superseded);
    assert_eq!(world.ignored(world.drift("base")), Reason::Superseded);
}

#[test]
fn edits_that_overlap_are_done_again_on_top_of_the_other_version() {
    let mut world = World::new(&["one", "two"]);
    world.running();
    world.take(world.step_done("one")).running();
    world.take(world.gate("two", "base", "tree"));
    world.take(world.drift("moved")).running();
    let overlap = AttemptOutcome::RebaseOverlap { target: digest("moved"), paths: vec!["a".into()], evidence: None };
    world.take(world.ended(overlap));
    assert!(
        matches!(&world.task.state, State::Queued { job: checkrein_shared::records::JobKind::Step { step, .. } } if step.as_str() == "one")
    );
    assert_eq!((world.task.base, world.task.tree, world.task.drifted), (Some(digest("moved")), None, None));
    assert!(world.task.required_actions[0].text.contains("somebody else changed"));
}

#[test]
fn a_person_who_approves_what_the_target_has_left_behind_gets_a_rebase() {
    let mut world = World::new(&["work"]);
    world.waiting();
    world.take(world.drift("moved"));
    let State::Waiting { item } = world.task.state.clone() else { panic!() };
    assert_eq!(item.stale[0].field, "base");
    world.take(EventKind::Approved { by: "ada".into(), hash: item.hash, note: None });
    assert_eq!((world.job(), world.task.grants.len()), ("rebase", 0));
}
