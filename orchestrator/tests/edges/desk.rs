//! One orchestrator over a folder, and hands that play a worker and a reviewer
//! on its bus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use checkrein_orchestrator::store::{LocalStore, Options, Store as _};
use checkrein_orchestrator::{Clock, Config, Orchestrator, Routes, SystemClock};
use checkrein_shared::api::{Api, Submission, TaskState};
use checkrein_shared::blob::{Blobs, FsBlobs};
use checkrein_shared::bus::{Bus, Consumer, EmbeddedBus, Message, Pool, Queue};
use checkrein_shared::coordinator::{Coordinator, LeaseAnswer, LeaseRequest, Receipt};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, TaskId};
use checkrein_shared::json;
use checkrein_shared::policy;
use checkrein_shared::records::{
    AgentSpec, Author, Budgets, ChangesetRef, ChangesetState, Checkpoint, CheckpointMessage, Confidence, Coverage,
    EffectClass, EvidenceIndex, EvidenceState, Handling, HomeDir, Integrity, Job, JobMessage, Judgement, Objective,
    Plan, PlanProgress, Resume, ReviewRequest, Reviewer, ReviewerType, Risk, Role, Step, StepAction, Summary, TaskSpec,
    Trigger, Verdict, VerdictMessage, WorkspaceSpec, WorkspaceState,
};
use checkrein_shared::signing::{KeyRecord, KeyRing, PayloadType, SigningKey};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, Manifest, node};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

const POLICY: &str = r#"
version: 1
verifiers:
  unit: {run: [sh, test.sh], timeout: 1m, network: none, carry: [], from_base: [], covers: ["**"]}
"#;

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A clock on the wall that a test may turn.
pub(crate) struct Turned {
    clock: SystemClock,
    millis: AtomicI64,
}

impl Turned {
    /// Turns it forward.
    pub(crate) fn days(&self, days: i64) {
        self.millis.fetch_add(days * 24 * 3_600_000, Ordering::SeqCst);
    }
}

impl Clock for Turned {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.now().as_millis() + self.millis.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// See the module.
pub(crate) struct Desk {
    pub(crate) clock: Arc<Turned>,
    pub(crate) bus: EmbeddedBus,
    pub(crate) blobs: Arc<FsBlobs>,
    pub(crate) api: Arc<dyn Api>,
    pub(crate) coordinator: Arc<dyn Coordinator>,
    store: Arc<LocalStore>,
    shutdown: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_random(&Zeroizing::new([seed; 32]))
}

pub(crate) fn name(text: &str) -> InstanceId {
    text.parse().unwrap()
}

impl Desk {
    pub(crate) async fn open(folder: &Path) -> Self {
        Self::open_days_later(folder, 0).await
    }

    /// Opens the folder with a clock that is ahead.
    pub(crate) async fn open_days_later(folder: &Path, days: i64) -> Self {
        let store = Arc::new(LocalStore::open(folder.join("store"), &Options::new(Timestamp::now())).unwrap());
        let blobs = Arc::new(FsBlobs::open(folder.join("blobs")).unwrap());
        let bus = EmbeddedBus::new();
        let mut ring = KeyRing::new();
        let since = Timestamp::from_millis(0);
        ring.add(KeyRecord::new(key(1).public_key(), Role::Reviewer, name("reviewer"), since)).unwrap();
        ring.add(KeyRecord::new(key(2).public_key(), Role::Worker, name("worker"), since)).unwrap();
        let clock = Arc::new(Turned { clock: SystemClock::start(), millis: AtomicI64::new(0) });
        clock.days(days);
        let pool: Pool = "local".parse().unwrap();
        let config = Config {
            instance: name("orchestrator"),
            routes: Routes { jobs: pool.clone(), reviews: pool },
            keys: Arc::new(ring),
            clock: clock.clone(),
            all_inside: true,
        };
        let orchestrator = Orchestrator::new(config, store.clone(), blobs.clone(), Arc::new(bus.clone()))
            .collecting(store.clone(), blobs.clone());
        orchestrator.prepare().await.unwrap();
        let (api, coordinator) = (orchestrator.api(), orchestrator.coordinator());
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let running = tokio::spawn(async move { orchestrator.run(token).await.unwrap() });
        Self { clock, bus, blobs, api, coordinator, store, shutdown, running }
    }

    /// Ends everything, as a process would that is stopped.
    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
        self.store.close().await.unwrap();
    }

    pub(crate) async fn submit(&self) -> TaskId {
        self.submit_with("").await
    }

    /// Submits a task whose policy says more.
    pub(crate) async fn submit_with(&self, more: &str) -> TaskId {
        let resolved = policy::load_text("test.yaml", format!("{POLICY}{more}").as_bytes()).unwrap();
        let submission = Submission {
            spec: spec(),
            policy: serde_json::from_slice(&resolved.to_bytes()).unwrap(),
            policy_name: "test".into(),
            origin: None,
            by: "ada".into(),
        };
        self.api.submit(submission).await.unwrap()
    }

    pub(crate) async fn consume(&self, queue: &str) -> Box<dyn Consumer> {
        self.bus.consume(&queue.parse().unwrap(), 1).await.unwrap()
    }

    /// Takes the next job's lease, as a worker would.
    pub(crate) async fn take_job(&self, jobs: &mut dyn Consumer) -> Job {
        let delivery = tokio::time::timeout(PATIENCE, jobs.next()).await.unwrap().unwrap();
        let message: JobMessage = delivery.message.parse("job message").unwrap();
        delivery.ack().await.unwrap();
        match self.lease(&message, "worker").await {
            LeaseAnswer::Granted { job, .. } => *job,
            LeaseAnswer::Refused { reason } => panic!("refused: {reason}"),
        }
    }

    pub(crate) async fn lease(&self, message: &JobMessage, worker: &str) -> LeaseAnswer {
        let request = LeaseRequest {
            task_id: message.task_id.clone(),
            job_id: message.job_id.clone(),
            epoch: message.epoch,
            worker: name(worker),
        };
        self.coordinator.take_lease(request).await.unwrap()
    }

    /// A gating checkpoint that a worker could write for this job; everything it names is stored.
    pub(crate) async fn checkpoint(&self, job: &Job) -> Checkpoint {
        let empty = Manifest::default();
        let tree = node::store_tree(self.blobs.as_ref(), &empty, None).await.unwrap();
        let changeset = self.blobs.put(&Changeset::between(&empty, &empty).to_bytes()).await.unwrap();
        let index = self.blobs.put(&json::canonical(&EvidenceIndex::default()).unwrap()).await.unwrap();
        let spec = spec();
        let sequence = job.head.as_ref().map_or(1, |head| head.sequence + 1);
        let unsealed = Checkpoint {
            format: 1,
            checkpoint_id: job.task_id.checkpoint(sequence),
            task_id: job.task_id.clone(),
            sequence,
            created_at: Timestamp::now(),
            runtime_version: "command/1".into(),
            state_version: job.state_version,
            epoch: job.epoch,
            trigger: Trigger::ChangesetBeforeApply,
            gate: true,
            policy_digest: job.policy,
            tool_schema_fingerprint: Digest::of("tools"),
            author: Author { role: Role::Worker, instance: name("worker") },
            workspace: WorkspaceState {
                root_id: job.root_id.clone(),
                git_commit: None,
                base: tree,
                tree,
                confinement: "none: test".into(),
            },
            objective: Objective {
                spec_ref: spec.spec_ref().to_owned(),
                spec_hash: spec.spec_hash(),
                text: spec.objective.clone(),
            },
            constraints: Vec::new(),
            plan: PlanProgress {
                version: job.plan.version,
                hash: job.plan.hash(),
                current_step_id: None,
                completed_step_ids: vec!["work".parse().unwrap()],
                pending_step_ids: Vec::new(),
            },
            changesets: ChangesetState {
                proposed: ChangesetRef { id: job.task_id.changeset(sequence), hash: changeset },
                applied: Vec::new(),
            },
            evidence: EvidenceState {
                index,
                test_run_ids: Vec::new(),
                tool_event_ids: Vec::new(),
                artifact_refs: Vec::new(),
            },
            approvals: Vec::new(),
            open_issues: Vec::new(),
            open_errors: Vec::new(),
            resume: Resume { idempotency_key: Digest::of("key"), preconditions: Vec::new(), run_state: None },
            summary: Summary::default(),
            integrity: Integrity {
                previous_checkpoint_hash: job.head.as_ref().map(|head| head.hash),
                checkpoint_hash: Digest::of("unsealed"),
            },
        };
        unsealed.seal().unwrap()
    }

    /// Sends a checkpoint, as a worker would, and waits for what became of it.
    pub(crate) async fn send(&self, checkpoint: &Checkpoint) -> Receipt {
        let record = self.blobs.put(&json::canonical(checkpoint).unwrap()).await.unwrap();
        let body = CheckpointMessage {
            task_id: checkpoint.task_id.clone(),
            checkpoint_id: checkpoint.checkpoint_id.clone(),
            epoch: checkpoint.epoch,
            record,
            completes: Some("work".parse().unwrap()),
        };
        self.publish("checkpoint", &checkpoint.task_id, checkpoint.epoch, Queue::InWorker, &body).await;
        let hash = checkpoint.integrity.checkpoint_hash;
        self.coordinator.receipt(&checkpoint.task_id, &checkpoint.checkpoint_id, hash).await.unwrap()
    }

    pub(crate) async fn publish<T: serde::Serialize>(
        &self,
        kind: &str,
        task: &TaskId,
        epoch: u64,
        queue: Queue,
        body: &T,
    ) {
        let id = format!("{kind}-{}", json::digest(body).unwrap().short()).parse().unwrap();
        let message = Message::new(id, kind, task.clone(), epoch, queue, body).unwrap();
        self.bus.publish(message).await.unwrap();
    }

    /// Takes the next review request.
    pub(crate) async fn take_review(&self, reviews: &mut dyn Consumer) -> ReviewRequest {
        let delivery = tokio::time::timeout(PATIENCE, reviews.next()).await.unwrap().unwrap();
        let request = delivery.message.parse("review request").unwrap();
        delivery.ack().await.unwrap();
        request
    }

    /// Publishes a verdict signed with `key`.
    pub(crate) async fn judge(&self, request: &ReviewRequest, verdict: &Verdict, key: &SigningKey) {
        let envelope = key.sign(PayloadType::Verdict, &json::canonical(verdict).unwrap());
        let envelope = self.blobs.put(&json::canonical(&envelope).unwrap()).await.unwrap();
        let (task_id, review_id) = (request.task_id.clone(), request.review_id.clone());
        let epoch = request.bindings.epoch;
        let body = VerdictMessage { task_id: task_id.clone(), review_id, envelope };
        self.publish("verdict", &task_id, epoch, Queue::InReviewer, &body).await;
    }

    /// Waits until the task is in a state.
    pub(crate) async fn until(&self, task: &TaskId, state: TaskState) {
        let waiting = async {
            let mut after = 0;
            while self.api.task(task).await.unwrap().summary.state != state {
                if let Some(last) = self.api.events(task, after, 1_000).await.unwrap().last() {
                    after = last.version;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("still {:?}", self.api.task(task).await.unwrap().summary);
        }
    }
}

pub(crate) fn spec() -> TaskSpec {
    TaskSpec {
        format: 1,
        name: "mend".into(),
        objective: "mend it".into(),
        spec: None,
        constraints: Vec::new(),
        workspace: WorkspaceSpec::Directory("/srv/project".into()),
        labels: BTreeMap::new(),
        agent: Some(AgentSpec { command: vec!["true".into()], env: Vec::new(), home: HomeDir::Private }),
        plan: Plan {
            version: 1,
            steps: vec![Step {
                id: "work".parse().unwrap(),
                action: StepAction::Prompt("mend it".into()),
                needs: Vec::new(),
                verify: Vec::new(),
                risk: Risk::R1,
                effect: EffectClass::ReadOnly,
                handling: Handling::default(),
            }],
        },
        budgets: Budgets::default(),
    }
}

pub(crate) fn verdict(request: &ReviewRequest, judgement: Judgement) -> Verdict {
    Verdict {
        format: 1,
        review_id: request.review_id.clone(),
        checkpoint_id: request.bindings.checkpoint_id.clone(),
        checkpoint_hash: request.bindings.checkpoint_hash,
        bindings: request.bindings.clone(),
        verdict: judgement,
        risk: Risk::R1,
        findings: Vec::new(),
        invalid_findings: Vec::new(),
        missing_evidence: Vec::new(),
        required_actions: Vec::new(),
        confidence: Confidence::High,
        coverage: Coverage::new(BTreeSet::new(), BTreeSet::new()),
        evidence: EvidenceIndex::default(),
        verifiers: Vec::new(),
        reviewer: Reviewer { kind: ReviewerType::Rules, model: None, identity: name("reviewer") },
        round: request.round,
        created_at: Timestamp::now(),
    }
}
