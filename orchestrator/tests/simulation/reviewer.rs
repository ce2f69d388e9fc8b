//! A reviewer at the level of records: it judges as the seed says, signs, and publishes. It is also slow, says two
//! things, answers what nobody asked, and binds its judgement to something else.

use std::collections::BTreeSet;
use std::rc::Rc;

use checkrein_orchestrator::Clock as _;
use checkrein_shared::bus::Queue;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, TaskId};
use checkrein_shared::json;
use checkrein_shared::records::{
    Checkpoint, Confidence, Coverage, EvidenceIndex, Finding, FindingStatus, Judgement, ReviewKind, ReviewRequest,
    Reviewer, ReviewerType, Risk, Severity, SourceRef, Verdict, VerdictMessage, VerifierOutcome,
};
use checkrein_shared::signing::PayloadType;

use crate::exec::Process;
use crate::keys::{self, KEYS};
use crate::process;
use crate::worker::records::envelope;
use crate::world::World;

pub(crate) async fn run(world: Rc<World>, process: Process, number: usize) {
    let me = keys::reviewer(number);
    loop {
        let item = world.next(&Queue::Reviews(process::pool()), process).await;
        let Ok(request) = item.message.parse::<ReviewRequest>("review request") else {
            world.bus.reject(item.tag);
            continue;
        };
        world.oracle.borrow_mut().requested(&request);
        world.sleep(world.rng.between(200, 8_000)).await;
        if world.fault(world.scenario.misconduct / 2) {
            // So slow that nobody waits for it any more.
            world.sleep(world.rng.between(60_000, 900_000)).await;
        }
        judge(&world, &request, number, &me).await;
        world.bus.ack(item.tag);
    }
}

async fn judge(world: &Rc<World>, request: &ReviewRequest, number: usize, me: &InstanceId) {
    let judgement = match world.rng.below(100) {
        dice if dice < world.scenario.objections => Judgement::ChangesRequired,
        dice if dice < world.scenario.objections * 5 / 4 => Judgement::Rejected,
        dice if dice < world.scenario.objections * 7 / 4 => Judgement::Inconclusive,
        _ => Judgement::Approved,
    };
    let mut verdict = verdict(world, request, me, judgement);
    if world.fault(world.scenario.misconduct) {
        distort(world, &mut verdict);
    }
    publish(world, request, &verdict, number).await;
    if world.fault(world.scenario.misconduct) {
        // It changes its mind, or says the same again.
        let second = match world.rng.below(2) {
            0 => verdict.clone(),
            _ => self::verdict(world, request, me, Judgement::Approved),
        };
        world.sleep(world.rng.below(40_000)).await;
        publish(world, request, &second, number).await;
    }
}

/// Signs a verdict and publishes it.
pub(crate) async fn publish(world: &Rc<World>, request: &ReviewRequest, verdict: &Verdict, number: usize) {
    world.say(|| {
        let Verdict { review_id, verdict, findings, .. } = verdict;
        format!("reviewer-{number} publishes {} for {review_id} ({} findings)", verdict.as_str(), findings.len())
    });
    let payload = json::canonical(verdict).expect("a verdict");
    let signed = KEYS.reviewers[number].sign(PayloadType::Verdict, &payload);
    let digest = world.blobs.keep(&json::canonical(&signed).expect("an envelope"));
    world.oracle.borrow_mut().signed(digest, verdict, &keys::reviewer(number));
    let message =
        VerdictMessage { task_id: request.task_id.clone(), review_id: verdict.review_id.clone(), envelope: digest };
    world.publish(envelope("verdict", &request.task_id, request.bindings.epoch, &message)).await;
}

fn verdict(world: &World, request: &ReviewRequest, me: &InstanceId, judgement: Judgement) -> Verdict {
    let checkpoint: Option<Checkpoint> =
        world.blobs.bytes(request.checkpoint.record).and_then(|bytes| json::parse_as("checkpoint", &bytes).ok());
    let open: Vec<Finding> = world
        .blobs
        .bytes(request.open_findings)
        .and_then(|bytes| json::parse_as("findings", &bytes).ok())
        .unwrap_or_default();
    // What can't be read is never approved.
    let judgement = if checkpoint.is_some() { judgement } else { Judgement::Inconclusive };
    let mut findings: Vec<Finding> = open.into_iter().map(|finding| seen_again(world, finding, judgement)).collect();
    // Some say no and do not say why.
    if judgement.is_negative() && !world.rng.once_in(4) && (findings.is_empty() || world.rng.percent(50)) {
        findings.push(finding(request, world.rng.below(3)));
    }
    let kind = match request.kind {
        ReviewKind::Rules => ReviewerType::Rules,
        ReviewKind::Model => ReviewerType::Model,
        ReviewKind::Command => ReviewerType::Command,
        ReviewKind::Human => ReviewerType::Human,
    };
    Verdict {
        format: 1,
        review_id: request.review_id.clone(),
        checkpoint_id: request.bindings.checkpoint_id.clone(),
        checkpoint_hash: request.bindings.checkpoint_hash,
        bindings: request.bindings.clone(),
        verdict: judgement,
        risk: Risk::R1,
        findings,
        invalid_findings: Vec::new(),
        missing_evidence: Vec::new(),
        required_actions: if judgement.is_negative() { vec!["mend it".into()] } else { Vec::new() },
        confidence: Confidence::High,
        coverage: Coverage::new(BTreeSet::new(), BTreeSet::new()),
        evidence: EvidenceIndex::default(),
        verifiers: outcomes(request.kind, judgement),
        reviewer: Reviewer { kind, model: None, identity: me.clone() },
        round: request.round,
        created_at: world.clock.now(),
    }
}

fn outcomes(kind: ReviewKind, judgement: Judgement) -> Vec<VerifierOutcome> {
    if kind != ReviewKind::Rules {
        return Vec::new();
    }
    let ok = judgement == Judgement::Approved;
    let run = "test:unit".parse().expect("a ref");
    vec![VerifierOutcome { name: "unit".into(), ok, exit: Some(i64::from(!ok)), flaky: false, run }]
}

fn seen_again(world: &World, mut finding: Finding, judgement: Judgement) -> Finding {
    let fixed = judgement == Judgement::Approved || world.rng.percent(30);
    finding.status = if fixed { FindingStatus::Fixed } else { FindingStatus::Open };
    // A fix without a place to see it is no fix.
    if fixed && world.fault(world.scenario.misconduct) {
        finding.source_refs.clear();
    }
    finding
}

fn finding(request: &ReviewRequest, number: u64) -> Finding {
    let place = format!("{}/{number}", request.bindings.checkpoint_hash);
    Finding {
        id: format!("f-{}-{number}", request.bindings.checkpoint_hash.short()).parse().expect("an id"),
        check: "verifiers".into(),
        severity: Severity::Medium,
        claim: format!("something is wrong at {place}"),
        source_refs: vec![SourceRef::Checkpoint("summary".into())],
        status: FindingStatus::New,
    }
}

/// Makes a verdict that must not count as what it says.
fn distort(world: &World, verdict: &mut Verdict) {
    verdict.verdict = Judgement::Approved;
    let bindings = &mut verdict.bindings;
    match world.rng.below(9) {
        0 => bindings.tree = Digest::of("another tree"),
        1 => bindings.base = Digest::of("another base"),
        2 => bindings.epoch += 1,
        3 => bindings.changeset_hash = Digest::of("another change"),
        4 => bindings.spec_hash = Digest::of("another wish"),
        5 => verdict.reviewer.identity = "somebody-else".parse().expect("an id"),
        6 => verdict.checkpoint_hash = Digest::of("another checkpoint"),
        7 => verdict.reviewer.kind = ReviewerType::Human,
        _ => {
            let other = format!("{}9", verdict.review_id);
            verdict.review_id = other.parse().expect("an id");
        }
    }
}

/// What somebody who wants it through would say.
pub(crate) fn praise(world: &World, request: &ReviewRequest, me: &InstanceId) -> Verdict {
    verdict(world, request, me, Judgement::Approved)
}

/// The newest review that was asked for.
pub(crate) fn newest_request(world: &World, task: &TaskId) -> Option<ReviewRequest> {
    world.oracle.borrow().newest_request(task)
}
