//! A task that tests lead through its life, one event at a time.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::coordinator::RedeemRequest;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, StepId, TaskId};
use checkrein_shared::policy::{self, CompiledPolicy};
use checkrein_shared::records::{
    Attempt, AttemptOutcome, Author, Budgets, ChangesetRef, ChangesetState, CheckOutcome, Checked, Checkpoint,
    Confidence, ConstraintRef, Coverage, EffectClass, EffectEntry, EvidenceIndex, EvidenceState, Finding,
    FindingStatus, Handling, Integrity, IssueRef, Judgement, Objective, Plan, PlanProgress, Precondition, Resume,
    Reviewer, ReviewerType, Risk, Role, RunStateRef, SavePoint, Severity, SourceRef, Step, StepAction, Summary,
    Trigger, Verdict, WorkspaceState,
};
use checkrein_shared::time::Timestamp;

use crate::lifecycle::{
    Answer, Change, Context, Decision, Effect, Event, EventKind, IllegalTransition, NewTask, PolicyPin, Reason,
    SpecState, State, Task, create, decide,
};

pub(super) const POLICY: &str = r#"
version: 1
extends: default
triggers:
  retry.exhausted: {on: true, gate: false}
  approval.after: {on: true, gate: false}
  human.before_takeover: {on: true, gate: false}
  changeset.after_apply: {on: true, gate: false}
  spec.changed: {on: true, gate: false}
verifiers:
  unit: {run: [sh, test.sh], timeout: 1m, network: none, carry: [], from_base: [], covers: ["**"]}
reviews:
- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true}
rules:
- {id: again, on: [round], when: "round.rejections > 0", action: retry, limit: 2, then: escalate, level: owner}
- {id: unclear, on: [round], when: "round.inconclusive > 0", action: request_evidence, limit: 1, then: escalate, level: owner}
- {id: good, on: [round], when: "round.complete", action: continue}
- {id: slow, on: [timeout], when: "true", action: escalate, level: owner}
- {id: objection, on: [late], when: "true", action: escalate, level: owner}
- {id: mend, on: [failed], when: "attempt.failures < 3", action: retry, limit: 9, then: escalate, level: owner}
- {id: broken, on: [failed], when: "true", action: escalate, level: owner}
- {id: spent, on: [budget], when: "true", action: escalate, level: owner}
- {id: overlap, on: [drift], when: "true", action: retry, limit: 1, then: escalate, level: owner}
escalation:
  owner: {to: [me], notify: [], deadline: 1h, approvers: 1, exclude: [], on_timeout: block}
"#;

/// A task, its policy and the newest record of its chain.
#[derive(Clone)]
pub(super) struct World {
    pub(super) task: Task,
    pub(super) policy: std::sync::Arc<CompiledPolicy>,
    pub(super) head: Option<Checkpoint>,
    pub(super) now: Timestamp,
    pub(super) version: u64,
    pub(super) effects: Vec<Effect>,
    pub(super) blobs: BTreeMap<Digest, Vec<u8>>,
    /// The effects ledger.
    pub(super) ledger: BTreeMap<Digest, EffectEntry>,
}

pub(super) fn digest(name: &str) -> Digest {
    Digest::of(name)
}

pub(super) fn step(id: &str) -> StepId {
    id.parse().unwrap()
}

pub(super) fn worker() -> InstanceId {
    "worker-1".parse().unwrap()
}

fn orchestrator() -> InstanceId {
    "orchestrator-1".parse().unwrap()
}

fn a_step(id: &str, needs: &[&str]) -> Step {
    Step {
        id: step(id),
        action: StepAction::Prompt("do it".into()),
        needs: needs.iter().map(|n| step(n)).collect(),
        verify: Vec::new(),
        risk: Risk::R1,
        effect: EffectClass::ReadOnly,
        handling: Handling::default(),
    }
}

pub(super) fn plan(steps: &[&str]) -> Plan {
    let mut previous: Vec<&str> = Vec::new();
    let mut made = Vec::new();
    for id in steps {
        made.push(a_step(id, &previous));
        previous = vec![id];
    }
    Plan { version: 1, steps: made }
}

impl World {
    /// A new task with these steps, one after the other.
    pub(super) fn new(steps: &[&str]) -> Self {
        Self::with_policy(steps, POLICY)
    }

    pub(super) fn with_policy(steps: &[&str], text: &str) -> Self {
        let resolved = policy::load_text("test.yaml", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let policy = std::sync::Arc::new(resolved.compile().unwrap_or_else(|e| panic!("{e}")));
        let now = Timestamp::from_millis(1_800_000_000_000);
        let (change, unaffected, instance) = (Change::default(), BTreeSet::new(), orchestrator());
        let no_effects = BTreeMap::new();
        let context = Context {
            policy: &policy,
            head: None,
            change: &change,
            effects: &no_effects,
            unaffected: &unaffected,
            orchestrator: &instance,
            version: 0,
        };
        let new = NewTask {
            id: TaskId::from_random([1, 2, 3, 4, 5]),
            name: "mend".into(),
            origin: None,
            by: "ada".into(),
            at: now,
            spec: spec("mend it"),
            policy: PolicyPin { name: "test".into(), digest: policy.digest() },
            plan: plan(steps),
            root_id: "root-1".parse().unwrap(),
        };
        let Ok(Decision::Advance { next, effects }) = create(new, &context) else { panic!("a task is created") };
        Self {
            task: *next,
            policy,
            head: None,
            now,
            version: 1,
            effects,
            blobs: BTreeMap::new(),
            ledger: BTreeMap::new(),
        }
    }

    /// Lets the core decide without taking over what it says.
    pub(super) fn peek(&self, kind: EventKind) -> Result<Decision, IllegalTransition> {
        let (change, unaffected, instance) = (self.change(), BTreeSet::new(), orchestrator());
        let context = Context {
            policy: &self.policy,
            head: self.head.as_ref(),
            change: &change,
            effects: &self.ledger,
            unaffected: &unaffected,
            orchestrator: &instance,
            version: self.version,
        };
        // A timer fires when it is due.
        let at = match &kind {
            EventKind::ReviewTimedOut { .. } => self.review_due().map_or(self.now, |due| due.max(self.now)),
            _ => self.now,
        };
        decide(&self.task, &Event { at, kind }, &context)
    }

    /// When the next of the reviews that are awaited is due.
    fn review_due(&self) -> Option<Timestamp> {
        let State::Reviewing { slots } = &self.task.state else { return None };
        slots.iter().filter(|slot| slot.answer == Answer::Awaited).map(|slot| slot.deadline).min()
    }

    fn change(&self) -> Change {
        Change { files: 1, lines: 2, paths: vec!["src/a".into()] }
    }

    /// Takes an event that must advance the task.
    pub(super) fn take(&mut self, kind: EventKind) -> &mut Self {
        let name = kind.name();
        let written = match &kind {
            EventKind::CheckpointWritten { checkpoint, .. } => Some(checkpoint.as_ref().clone()),
            _ => None,
        };
        match self.peek(kind) {
            Ok(Decision::Advance { next, effects }) => self.adopt(*next, effects, written),
            other => panic!("{name} in {:?}: {other:?}", self.task.state),
        }
        self
    }

    fn adopt(&mut self, next: Task, effects: Vec<Effect>, written: Option<Checkpoint>) {
        self.task = next;
        self.version += 1;
        self.now = self.now.max(self.task.updated_at).plus(std::time::Duration::from_millis(10));
        for effect in &effects {
            if let Effect::StoreBlob { digest, bytes } = effect {
                assert_eq!(*digest, Digest::of(bytes), "a blob is named by its bytes");
                self.blobs.insert(*digest, bytes.clone());
            }
            if let Effect::PutRow { table, value, .. } = effect
                && table == crate::lifecycle::EFFECT_TABLE
            {
                let entry: EffectEntry = serde_json::from_value(value.clone()).unwrap();
                self.ledger.insert(entry.key, entry);
            }
        }
        if let Some(head) = self.task.head.clone() {
            let control = self.blobs.get(&head.record);
            let control = control.map(|b| checkrein_shared::json::parse_as::<Checkpoint>("checkpoint", b).unwrap());
            if let Some(checkpoint) = control.or(written) {
                assert_eq!(checkpoint.integrity.checkpoint_hash, head.hash);
                checkpoint.check_hash().unwrap();
                self.head = Some(checkpoint);
            }
        }
        self.effects = effects;
    }

    /// Takes an event that must be ignored, and says why it was.
    pub(super) fn ignored(&self, kind: EventKind) -> Reason {
        match self.peek(kind) {
            Ok(Decision::Ignore(reason)) => reason,
            other => panic!("expected it to be ignored in {:?}: {other:?}", self.task.state),
        }
    }

    /// Takes an event that must be refused, and returns the hint.
    pub(super) fn refused(&self, kind: EventKind) -> String {
        match self.peek(kind) {
            Err(illegal) => illegal.hint,
            other => panic!("expected it to be refused in {:?}: {other:?}", self.task.state),
        }
    }

    // Events as workers and reviewers would send them now.

    pub(super) fn lease(&self) -> EventKind {
        let epoch = self.task.epoch;
        EventKind::LeaseTaken { job_id: self.task.id.job(epoch), epoch, worker: worker() }
    }

    pub(super) fn ended(&self, outcome: AttemptOutcome) -> EventKind {
        let attempt = Attempt {
            job_id: self.task.id.job(self.task.epoch),
            task_id: self.task.id.clone(),
            epoch: self.task.epoch,
            worker: worker(),
            outcome,
        };
        EventKind::AttemptEnded { attempt: Box::new(attempt) }
    }

    pub(super) fn conditions(&self) -> EventKind {
        let checks = vec![Checked { condition: Precondition::WorkspacePresent, outcome: CheckOutcome::Pass {} }];
        EventKind::PreconditionsChecked { epoch: self.task.epoch, worker: worker(), checks }
    }

    /// A save point of the running attempt, on the task's base.
    pub(super) fn saved(&self, at: &str, state: &str, tree: &str) -> EventKind {
        let save_point = SavePoint {
            epoch: self.task.epoch,
            step: step(at),
            run_state: RunStateRef { digest: digest(state), turns: 1, tokens_used: 0, tokens_total: 0 },
            base: self.task.base.unwrap_or(digest("base")),
            tree: digest(tree),
            evidence_index: Some(digest("index")),
            began: None,
        };
        EventKind::SavePointTaken { worker: worker(), save_point: Box::new(save_point) }
    }

    pub(super) fn step_done(&self, id: &str) -> EventKind {
        self.ended(AttemptOutcome::StepDone {
            step: step(id),
            base: digest("base"),
            tree: digest("tree"),
            evidence_index: digest("index"),
        })
    }

    pub(super) fn step_failed(&self, id: &str, error: &str) -> EventKind {
        self.ended(AttemptOutcome::StepFailed {
            step: step(id),
            error: IssueRef { id: "e".into(), severity: Severity::High, text: error.into(), refs: Vec::new() },
            error_hash: digest(error),
            base: Some(digest("base")),
            tree: Some(digest("tree")),
            evidence_index: None,
        })
    }

    pub(super) fn applied(&self, target: &str) -> EventKind {
        let grant = self.task.grants.last().unwrap();
        self.ended(AttemptOutcome::Applied {
            grant: grant.id.clone(),
            changeset: grant.changeset.clone(),
            target: digest(target),
            commit: None,
        })
    }

    pub(super) fn redeem(&self, target: &str) -> EventKind {
        let grant = self.task.grants.last().unwrap();
        EventKind::RedeemRequested {
            request: RedeemRequest {
                task_id: self.task.id.clone(),
                grant: grant.id.clone(),
                epoch: self.task.epoch,
                target: digest(target),
                changeset_hash: grant.changeset.hash,
            },
        }
    }

    pub(super) fn drift(&self, target: &str) -> EventKind {
        let base = self.task.base.unwrap_or(digest("base"));
        EventKind::TargetDrifted { base, target: digest(target), paths: vec!["README".into()] }
    }

    pub(super) fn checkpoint(&self, trigger: Trigger, gate: bool, base: &str, tree: &str) -> Checkpoint {
        let (sequence, previous) = self.task.head.as_ref().map_or((1, None), |h| (h.sequence + 1, Some(h.hash)));
        let proposed = ChangesetRef { id: self.task.id.changeset(sequence), hash: digest(&format!("{base}>{tree}")) };
        let unsealed = Checkpoint {
            format: 1,
            checkpoint_id: self.task.id.checkpoint(sequence),
            task_id: self.task.id.clone(),
            sequence,
            created_at: self.now,
            runtime_version: "command/1".into(),
            state_version: self.version,
            epoch: self.task.epoch,
            trigger,
            gate,
            policy_digest: self.task.policy.digest,
            tool_schema_fingerprint: digest("tools"),
            author: Author { role: Role::Worker, instance: worker() },
            workspace: WorkspaceState {
                root_id: self.task.root_id.clone(),
                git_commit: None,
                base: digest(base),
                tree: digest(tree),
                confinement: "none: test".into(),
            },
            objective: Objective {
                spec_ref: "objective".into(),
                spec_hash: self.task.spec.hash,
                text: self.task.spec.objective.clone(),
            },
            constraints: self.task.spec.constraints.clone(),
            plan: PlanProgress {
                version: self.task.plan.version,
                hash: self.task.plan.hash(),
                current_step_id: None,
                completed_step_ids: self.task.completed(),
                pending_step_ids: self.task.pending(),
            },
            changesets: ChangesetState { proposed, applied: self.task.applied.clone() },
            evidence: EvidenceState {
                index: digest("index"),
                test_run_ids: Vec::new(),
                tool_event_ids: Vec::new(),
                artifact_refs: Vec::new(),
            },
            approvals: Vec::new(),
            open_issues: Vec::new(),
            open_errors: Vec::new(),
            resume: Resume { idempotency_key: digest("key"), preconditions: Vec::new(), run_state: None },
            summary: Summary::default(),
            integrity: Integrity { previous_checkpoint_hash: previous, checkpoint_hash: digest("none") },
        };
        unsealed.seal().unwrap()
    }

    pub(super) fn gate(&self, completes: &str, base: &str, tree: &str) -> EventKind {
        written(self.checkpoint(Trigger::ChangesetBeforeApply, true, base, tree), Some(completes))
    }

    pub(super) fn verdict(&self, judgement: Judgement, findings: Vec<Finding>) -> Verdict {
        let subject = self.task.subject.as_ref().unwrap();
        let State::Reviewing { slots } = &self.task.state else { panic!("no review is open: {:?}", self.task.state) };
        self.verdict_of(&slots[0].id.clone(), subject.bindings.clone(), judgement, findings)
    }

    pub(super) fn verdict_of(
        &self,
        review: &checkrein_shared::ids::ReviewId,
        bindings: checkrein_shared::records::Bindings,
        verdict: Judgement,
        findings: Vec<Finding>,
    ) -> Verdict {
        Verdict {
            format: 1,
            review_id: review.clone(),
            checkpoint_id: bindings.checkpoint_id.clone(),
            checkpoint_hash: bindings.checkpoint_hash,
            bindings,
            verdict,
            risk: Risk::R2,
            findings,
            invalid_findings: Vec::new(),
            missing_evidence: Vec::new(),
            required_actions: vec!["mend the test".into()],
            confidence: Confidence::High,
            coverage: Coverage::new(BTreeSet::new(), BTreeSet::new()),
            evidence: EvidenceIndex::default(),
            verifiers: Vec::new(),
            reviewer: Reviewer { kind: ReviewerType::Rules, model: None, identity: "reviewer-1".parse().unwrap() },
            round: self.task.round,
            created_at: self.now,
        }
    }

    // Ways to states.

    pub(super) fn running(&mut self) -> &mut Self {
        self.take(self.lease())
    }

    /// Leads a one-step task to its first review.
    pub(super) fn reviewing(&mut self) -> &mut Self {
        self.running();
        let last = self.task.plan.steps.last().unwrap().id.to_string();
        self.take(self.gate(&last, "base", "tree"))
    }

    pub(super) fn judged(&mut self, judgement: Judgement) -> &mut Self {
        let findings = if judgement.is_negative() { vec![finding("f-1")] } else { Vec::new() };
        self.take(published(self.verdict(judgement, findings)))
    }

    /// Leads a one-step task to a queued apply.
    pub(super) fn granted(&mut self) -> &mut Self {
        self.reviewing().judged(Judgement::Approved)
    }

    /// Leads a task to an item about its only step's failures.
    pub(super) fn waiting(&mut self) -> &mut Self {
        self.reviewing();
        self.take(EventKind::ReviewTimedOut { round: 1 })
    }

    pub(super) fn state(&self) -> &'static str {
        self.task.state.name()
    }

    /// The job that is queued or running.
    pub(super) fn job(&self) -> &'static str {
        match &self.task.state {
            State::Queued { job } | State::Running { job, .. } => job.as_str(),
            _ => "none",
        }
    }
}

pub(super) fn written(checkpoint: Checkpoint, completes: Option<&str>) -> EventKind {
    let record = Digest::of(checkrein_shared::json::canonical(&checkpoint).unwrap());
    EventKind::CheckpointWritten { checkpoint: Box::new(checkpoint), record, completes: completes.map(step) }
}

pub(super) fn published(verdict: Verdict) -> EventKind {
    let envelope = digest(verdict.review_id.as_str());
    EventKind::VerdictPublished { verdict: Box::new(verdict), envelope }
}

pub(super) fn finding(id: &str) -> Finding {
    Finding {
        id: id.parse().unwrap(),
        check: "verifiers".into(),
        severity: Severity::High,
        claim: "the test fails".into(),
        source_refs: vec![SourceRef::Checkpoint("summary".into())],
        status: FindingStatus::New,
    }
}

pub(super) fn spec(objective: &str) -> SpecState {
    SpecState {
        record: digest(objective),
        hash: digest(objective),
        spec_ref: "objective".into(),
        objective: objective.into(),
        workspace: "/srv/project".into(),
        constraints: vec![ConstraintRef { id: "c".into(), version: 1, hash: digest("c") }],
        labels: BTreeMap::new(),
        budgets: Budgets::default(),
    }
}
