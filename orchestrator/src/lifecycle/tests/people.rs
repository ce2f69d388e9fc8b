//! What people do, and what they can't.

use checkrein_shared::digest::Digest;
use checkrein_shared::records::Judgement;

use super::fixture::{POLICY, World, digest, finding, published};
use crate::lifecycle::{Effect, EventKind, Reason, State};

fn approve(by: &str, hash: Digest) -> EventKind {
    EventKind::Approved { by: by.into(), hash, note: None }
}

fn item_hash(world: &World) -> Digest {
    world.task.items()[0].hash
}

#[test]
fn a_person_approves_exactly_what_was_shown() {
    let mut world = World::new(&["work"]);
    world.waiting();
    world.refused(approve("ada", digest("something else")));
    let hash = item_hash(&world);
    world.take(approve("ada", hash));
    assert_eq!(world.job(), "apply");
    assert_eq!(world.task.approvals[0].checkpoint_hash, hash);
    world.running();
    world.take(world.redeem("base"));
}

#[test]
fn an_expired_item_blocks_and_a_late_click_runs_nothing() {
    let mut world = World::new(&["work"]);
    world.waiting();
    let (hash, item) = (item_hash(&world), world.task.items()[0].id.clone());
    world.take(EventKind::ItemExpired { item, stage: 0 });
    let State::Blocked { reason, .. } = &world.task.state else { panic!() };
    assert!(reason.starts_with("expired"), "{reason}");
    world.refused(approve("ada", hash));
}

#[test]
fn two_approvers_are_two_people_and_the_author_may_be_excluded() {
    let text = POLICY.replace("approvers: 1, exclude: []", "approvers: 2, exclude: [author]");
    let mut world = World::with_policy(&["work"], &text);
    world.waiting();
    let hash = item_hash(&world);
    assert!(world.refused(approve("ada", hash)).contains("submitted"));
    world.take(approve("bea", hash));
    assert_eq!(world.state(), "waiting for a person");
    assert!(matches!(world.ignored(approve("bea", hash)), crate::lifecycle::Reason::Duplicate));
    world.take(approve("cy", hash));
    assert_eq!(world.job(), "apply");
}

#[test]
fn one_claim_wins_and_the_others_are_told_whose_it_is() {
    let mut world = World::new(&["work"]);
    world.waiting();
    world.take(EventKind::ItemClaimed { by: "bea".into() });
    assert!(world.refused(EventKind::ItemClaimed { by: "cy".into() }).contains("bea"));
}

#[test]
fn takeover_fences_the_worker_and_hand_back_gates_the_persons_tree() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let epoch = world.task.epoch;
    world.take(EventKind::TakeoverRequested { by: "bea".into(), folder: "/tmp/t".into() });
    assert!(world.task.epoch > epoch);
    let back = |by: &str, from: &str| EventKind::HandedBack {
        by: by.into(),
        tree: digest("edited"),
        started_from: digest(from),
        note: None,
    };
    world.refused(back("cy", "tree"));
    world.refused(back("bea", "another"));
    world.take(back("bea", "tree")).running();
    world.take(world.gate("work", "base", "edited"));
    assert_eq!(world.state(), "reviewing");
    // Whoever edited the change is never its only approver.
    world.take(EventKind::ReviewTimedOut { round: world.task.round });
    let hash = item_hash(&world);
    assert!(world.refused(approve("bea", hash)).contains("edited"));
    world.take(approve("cy", hash));
    assert_eq!(world.job(), "apply");
}

#[test]
fn takeover_of_a_running_task_waits_for_its_checkpoint_or_its_loss() {
    let wanted = || EventKind::TakeoverRequested { by: "bea".into(), folder: "/tmp/t".into() };
    let mut world = World::new(&["work"]);
    // As after an earlier attempt: there are files to take over.
    world.task.tree = Some(digest("tree"));
    world.running().take(wanted());
    assert_eq!(world.state(), "running");
    let mut lost = world.clone();
    lost.take(EventKind::LeaseExpired { epoch: lost.task.epoch });
    assert_eq!(lost.state(), "held by a person");
    world.take(world.gate("work", "base", "tree"));
    assert_eq!(world.state(), "held by a person");
}

#[test]
fn cancel_waits_for_a_running_worker() {
    let mut world = World::new(&["work"]);
    world.running().take(EventKind::CancelRequested { by: "ada".into() });
    assert_eq!(world.state(), "being cancelled");
    world.take(world.step_failed("work", "stopped"));
    assert_eq!(world.state(), "done");
}

#[test]
fn cancel_voids_a_grant_that_was_not_redeemed() {
    let mut world = World::new(&["work"]);
    world.granted().take(EventKind::CancelRequested { by: "ada".into() });
    assert!(world.task.open_grant().is_none());
}

#[test]
fn a_paused_review_goes_on_and_its_verdict_is_acted_on_after_resume() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let verdict = world.verdict(Judgement::Approved, Vec::new());
    world.take(EventKind::PauseRequested { by: "ada".into() });
    world.take(published(verdict));
    assert_eq!(world.state(), "paused");
    world.take(EventKind::ResumeRequested { by: "ada".into() });
    assert_eq!(world.job(), "apply");
}

#[test]
fn the_deadline_of_an_item_stands_still_while_paused() {
    let mut world = World::new(&["work"]);
    world.waiting();
    let before = world.task.items()[0].deadline.unwrap();
    world.take(EventKind::PauseRequested { by: "ada".into() });
    world.now = world.now.plus(std::time::Duration::from_secs(7_200));
    world.take(EventKind::ResumeRequested { by: "ada".into() });
    assert!(world.task.items()[0].deadline.unwrap() >= before.plus(std::time::Duration::from_secs(7_200)));
}

#[test]
fn a_person_closes_a_finding_with_a_reason() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let veto = world.verdict(Judgement::ChangesRequired, vec![finding("f-1")]);
    world.take(published(veto));
    let close =
        |id: &str| EventKind::FindingClosed { by: "ada".into(), finding: id.parse().unwrap(), reason: "known".into() };
    world.refused(close("f-2"));
    world.take(close("f-1"));
    assert!(world.task.findings.is_empty());
}

#[test]
fn a_deadline_that_passed_while_nothing_ran_leaves_five_minutes_after_a_reminder() {
    let minutes = |minutes: u64| std::time::Duration::from_secs(60 * minutes);
    let mut world = World::new(&["work"]);
    world.waiting();
    let item = world.task.items()[0].clone();
    let missed = EventKind::DeadlineMissed { item: item.id.clone() };
    assert_eq!(world.ignored(missed.clone()), Reason::Superseded, "it has not passed yet");
    world.now = item.deadline.unwrap().plus(minutes(600));
    let reminded = world.now;
    world.take(missed.clone());
    assert_eq!(world.task.items()[0].deadline, Some(reminded.plus(minutes(5))));
    let timer = |effect: &Effect| matches!(effect, Effect::SetTimer { at, .. } if *at == reminded.plus(minutes(5)));
    assert!(world.effects.iter().any(timer));
    world.now = reminded.plus(minutes(4));
    assert_eq!(world.ignored(missed.clone()), Reason::Superseded, "a second start does not move it again");
    world.take(EventKind::ItemExpired { item: item.id, stage: 0 });
    assert_eq!(world.state(), "blocked");
    assert_eq!(world.ignored(missed), Reason::NotInThisState);
}
