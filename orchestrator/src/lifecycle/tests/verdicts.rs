//! Which verdicts count, which stay visible only, and what they leave open.

use checkrein_shared::records::{FindingStatus, Judgement, ReviewKind, ReviewerType};

use super::fixture::{POLICY, World, digest, finding, published, spec};
use crate::lifecycle::{EventKind, Reason};

#[test]
fn a_verdict_with_one_foreign_binding_never_counts() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let good = world.verdict(Judgement::Approved, Vec::new());
    let changes: [fn(&mut checkrein_shared::records::Bindings); 12] = [
        |b| b.task_id = "t-other".parse().unwrap(),
        |b| b.base = digest("x"),
        |b| b.tree = digest("x"),
        |b| b.plan_version += 1,
        |b| b.plan_hash = digest("x"),
        |b| b.changeset_hash = digest("x"),
        |b| b.spec_hash = digest("x"),
        |b| b.constraints_hash = digest("x"),
        |b| b.policy_digest = digest("x"),
        |b| b.tool_schema_fingerprint = digest("x"),
        |b| b.runtime_version.push('x'),
        |b| b.epoch += 1,
    ];
    for change in changes {
        let mut verdict = good.clone();
        change(&mut verdict.bindings);
        let mut tried = world.clone();
        tried.take(published(verdict));
        assert_eq!(tried.state(), "reviewing");
        assert_eq!(tried.task.verdicts[0].stale.len(), 1);
    }
    world.take(published(good));
    assert_eq!(world.job(), "apply");
}

#[test]
fn a_negative_verdict_opens_findings_even_when_it_is_stale() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let mut stale = world.verdict(Judgement::ChangesRequired, vec![finding("f-1")]);
    stale.bindings.tree = digest("older");
    stale.review_id = "rv-late".parse().unwrap();
    world.take(published(stale));
    assert_eq!(world.task.findings.len(), 1);
    // And `continue` cannot pass over them: a person has to.
    world.judged(Judgement::Approved);
    assert_eq!(world.state(), "waiting for a person");
    assert!(world.task.grants.is_empty());
}

#[test]
fn a_stale_approval_closes_nothing() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired);
    assert_eq!(world.task.findings.len(), 1);
    world.running();
    world.take(world.gate("work", "base", "tree-2"));
    let mut fixed = finding("f-1");
    fixed.status = FindingStatus::Fixed;
    let mut stale = world.verdict(Judgement::Approved, vec![fixed.clone()]);
    stale.bindings.tree = digest("tree");
    stale.review_id = "rv-old".parse().unwrap();
    world.take(published(stale));
    assert_eq!(world.task.findings.len(), 1);
    let good = world.verdict(Judgement::Approved, vec![fixed]);
    world.take(published(good));
    assert!(world.task.findings.is_empty());
    assert_eq!(world.job(), "apply");
}

#[test]
fn findings_that_the_review_saw_again_and_approved_stay_visible_without_veto() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired).running();
    world.take(world.gate("work", "base", "tree-2"));
    let mut open = finding("f-1");
    open.status = FindingStatus::Open;
    let good = world.verdict(Judgement::Approved, vec![open]);
    world.take(published(good));
    assert_eq!((world.task.findings.len(), world.job()), (1, "apply"));
}

#[test]
fn a_verdict_counts_once() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let verdict = world.verdict(Judgement::Approved, Vec::new());
    world.take(published(verdict.clone()));
    assert_eq!(world.ignored(published(verdict)), Reason::Duplicate);
    assert_eq!(world.task.grants.len(), 1);
}

#[test]
fn a_round_waits_for_every_blocking_review_and_for_no_other() {
    let text = POLICY.replace(
        "reviews:\n",
        "reviews:\n- {name: two, kind: model, model: m, on: [changeset.before_apply], blocking: true, count: 2, quorum: all, veto: true}\n- {name: bot, kind: model, model: m, on: [changeset.before_apply], blocking: false}\n",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing();
    let crate::lifecycle::State::Reviewing { slots } = world.task.state.clone() else { panic!() };
    assert_eq!(slots.len(), 4);
    let bindings = world.task.subject.as_ref().unwrap().bindings.clone();
    for slot in slots.iter().filter(|s| s.blocking) {
        assert_eq!(world.state(), "reviewing");
        let mut verdict = world.verdict_of(&slot.id, bindings.clone(), Judgement::Approved, Vec::new());
        if slot.kind == ReviewKind::Model {
            verdict.reviewer.kind = ReviewerType::Model;
        }
        world.take(published(verdict));
    }
    assert_eq!(world.job(), "apply");
}

#[test]
fn an_approval_is_inherited_only_while_nothing_that_it_rests_on_changed() {
    let mut world = World::new(&["work"]);
    world.granted();
    // A worker is lost, and the person pauses and resumes: the same trees gate again.
    world.take(EventKind::PauseRequested { by: "ada".into() });
    world.task.drifted = None;
    world.take(EventKind::ResumeRequested { by: "ada".into() });
    let mut same = world.clone();
    same.task.state = crate::lifecycle::State::Queued { job: checkrein_shared::records::JobKind::Rebase };
    let mut other = same.clone();
    same.running();
    same.take(same.gate("work", "base", "tree"));
    assert_eq!(same.job(), "apply", "inherited: {:?}", same.task.state);
    let carried = same.task.verdicts.last().unwrap();
    assert!(carried.inherited_from.is_some() && carried.stale.is_empty());
    other.running();
    other.take(other.gate("work", "base", "other tree"));
    assert_eq!(other.state(), "reviewing");
}

#[test]
fn an_amended_specification_makes_verdicts_stale_and_asks_again() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let old = world.verdict(Judgement::Approved, Vec::new());
    world.take(EventKind::Amended { by: "ada".into(), spec: Some(Box::new(spec("another"))), plan: None });
    assert_eq!((world.state(), world.task.round), ("reviewing", 2));
    world.take(published(old));
    assert_eq!(world.state(), "reviewing", "a verdict on the old specification does not count");
    let fields: Vec<_> = world.task.verdicts[0].stale.iter().map(|m| m.field.as_str()).collect();
    assert!(fields.contains(&"spec_hash"), "{fields:?}");
}

#[test]
fn a_compromised_key_voids_the_grant_and_the_review_is_asked_for_again() {
    let mut world = World::new(&["work"]);
    world.granted();
    let since = world.task.created_at;
    world.take(EventKind::KeyCompromised { reviewer: "reviewer-1".parse().unwrap(), since });
    assert_eq!((world.state(), world.task.round), ("reviewing", 2));
    assert!(world.task.open_grant().is_none());
}
