//! The project, the stores and the bus of one test, and workers that come and go.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::blob::{Blobs, FsBlobs};
use checkrein_shared::bus::{Bus, EmbeddedBus, Message, Queue};
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use checkrein_shared::policy::{self, ResolvedPolicy};
use checkrein_shared::process::Supervisor;
use checkrein_shared::records::{Attempt, AttemptOutcome, Conversation, Job, JobKind, JobMessage, TaskSpec};
use checkrein_worker::{HostEnvironment, Worker, WorkerConfig};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::agents::Agents;
use super::coordinator::{Judge, Link, State};

/// Longer than any test needs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) blobs: Arc<FsBlobs>,
    pub(crate) bus: EmbeddedBus,
    pub(crate) judge: Arc<Judge>,
    pub(crate) agents: Agents,
    pub(crate) policy: ResolvedPolicy,
}

pub(crate) struct WorkerOptions {
    pub(crate) name: &'static str,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) park_grace: Duration,
    pub(crate) slots: usize,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self { name: "one", environment: Vec::new(), park_grace: Duration::from_secs(60), slots: 1 }
    }
}

pub(crate) struct RunningWorker {
    pub(crate) shutdown: CancellationToken,
    task: JoinHandle<Result<(), checkrein_worker::Error>>,
}

impl RunningWorker {
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the worker ends").unwrap().unwrap();
    }
}

impl Bench {
    pub(crate) async fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        let blobs = Arc::new(FsBlobs::open(dir.path().join("data/blobs")).unwrap());
        let bus = EmbeddedBus::new();
        bus.declare(&Queue::Jobs("default".parse().unwrap())).await.unwrap();
        let judge = Judge::new(project.clone());
        tokio::spawn(Arc::clone(&judge).take_reports(bus.clone(), blobs.clone()));
        let policy = policy::load_named("default").unwrap();
        let agents = Agents::new(&dir.path().join("agents"));
        let bench = Self { dir, project, blobs, bus, judge, agents, policy };
        for (path, text) in files {
            bench.write(path, text);
        }
        bench
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project.join(path)).unwrap()
    }

    /// Everything in the project, for comparing.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.project.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() { open.push(path) } else { found.push((path.clone(), std::fs::read(&path).unwrap())) }
            }
        }
        found.sort();
        found
    }

    /// A worker with a cache folder of its own.
    pub(crate) fn worker(&self, options: WorkerOptions) -> RunningWorker {
        let instance = format!("worker-{}", options.name).parse().unwrap();
        let cache = self.dir.path().join("data").join(format!("cache-{}", options.name));
        let program = std::env::current_exe().unwrap();
        let pools = vec!["default".parse().unwrap()];
        let mut config = WorkerConfig::new(instance, cache, Supervisor::new(program), pools);
        let path = std::env::var_os("PATH").unwrap();
        let own = options.environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        config.environment = HostEnvironment::new(own.chain([("PATH".into(), path)]));
        config.hidden = vec![self.dir.path().join("data")];
        config.park_grace = options.park_grace;
        config.kill_grace = Duration::from_millis(200);
        config.drift_interval = Duration::from_millis(20);
        config.save_interval = Duration::from_millis(60);
        config.slots = options.slots;
        let worker = Worker::new(config, Arc::new(self.bus.clone()), self.blobs.clone(), self.judge.clone()).unwrap();
        let shutdown = CancellationToken::new();
        RunningWorker { shutdown: shutdown.clone(), task: tokio::spawn(worker.run(shutdown)) }
    }

    /// A task whose agent is a script, as the first job of its life.
    pub(crate) async fn task(&self, spec: &TaskSpec) -> Job {
        let spec_blob = self.blobs.put(&json::canonical(spec).unwrap()).await.unwrap();
        let policy = self.blobs.put(&self.policy.to_bytes()).await.unwrap();
        let task_id = super::tasks::task_id(1);
        let first = spec.plan.order()[0].clone();
        Job {
            job_id: task_id.job(1),
            task_id,
            epoch: 1,
            kind: JobKind::Step { step: first, conversation: Conversation::Same },
            root_id: spec.workspace.root_id(),
            spec: spec_blob,
            policy,
            plan: spec.plan.clone(),
            completed: Vec::new(),
            head: None,
            state_version: 1,
            base: None,
            tree: None,
            evidence_index: None,
            round: 1,
            failures: 0,
            required_actions: Vec::new(),
            applied: Vec::new(),
            approvals: Vec::new(),
            open_issues: Vec::new(),
            resume: None,
            later_effects: Vec::new(),
        }
    }

    /// Dispatches a job without waiting for it.
    pub(crate) async fn dispatch(&self, job: &Job) {
        self.judge.state().jobs.insert(job.task_id.clone(), job.clone());
        let message = JobMessage { job_id: job.job_id.clone(), task_id: job.task_id.clone(), epoch: job.epoch };
        let id = format!("m-{}", job.job_id).parse().unwrap();
        let queue = Queue::Jobs("default".parse().unwrap());
        let message = Message::new(id, "job", job.task_id.clone(), job.epoch, queue, &message).unwrap();
        self.bus.publish(message).await.unwrap();
    }

    /// Waits until the state is as wanted, and takes something out of it.
    pub(crate) async fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let found = async {
            loop {
                let changed = self.judge.changed.notified();
                if let Some(found) = look(&mut self.judge.state()) {
                    return found;
                }
                // A change between looking and waiting is seen at the next tick.
                let _ = tokio::time::timeout(Duration::from_millis(20), changed).await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("never: {what}"))
    }

    /// Dispatches a job and waits for its gating checkpoint.
    pub(crate) async fn gate(&self, job: &Job) -> Link {
        let before = self.judge.state().chain.len();
        self.dispatch(job).await;
        self.wait("a gating checkpoint", |state| {
            assert!(state.attempts.iter().all(|a| a.epoch != job.epoch), "{:?}", state.attempts);
            state.chain[before..].iter().find(|link| link.checkpoint.gate).cloned()
        })
        .await
    }

    /// Dispatches a job and waits for its report.
    pub(crate) async fn outcome(&self, job: &Job) -> AttemptOutcome {
        self.dispatch(job).await;
        self.report(job).await.outcome
    }

    /// Waits for a job's report.
    pub(crate) async fn report(&self, job: &Job) -> Attempt {
        let of_job = |attempt: &&Attempt| attempt.epoch == job.epoch && attempt.task_id == job.task_id;
        self.wait("a report", |state| state.attempts.iter().find(of_job).cloned()).await
    }

    /// The job that follows, standing where the state of the task stands.
    pub(crate) fn next(&self, job: &Job, kind: JobKind) -> Job {
        let state = self.judge.state();
        let mut next = state.jobs.get(&job.task_id).unwrap_or(job).clone();
        next.epoch += 1;
        next.job_id = next.task_id.job(next.epoch);
        next.kind = kind;
        if let Some(link) = state.chain.last() {
            next.base = Some(link.checkpoint.workspace.base);
            next.tree = Some(link.checkpoint.workspace.tree);
            next.evidence_index = Some(link.checkpoint.evidence.index);
            next.completed = link.checkpoint.plan.completed_step_ids.clone();
        }
        next
    }

    /// The job that applies what a checkpoint proposes, with a grant for it.
    pub(crate) fn apply_job(&self, job: &Job, link: &Link) -> Job {
        let changeset = link.checkpoint.changesets.proposed.clone();
        let grant = job.task_id.grant(1);
        let bound = super::coordinator::Grant {
            base: link.checkpoint.workspace.base,
            changeset: changeset.hash,
            redeemed: false,
            void: false,
        };
        self.judge.state().grants.insert(grant.clone(), bound);
        self.next(job, JobKind::Apply { grant, changeset })
    }

    /// How many attempts and checkpoints there are.
    pub(crate) fn counts(&self, task: &TaskId) -> (usize, usize) {
        let state = self.judge.state();
        let attempts = state.attempts.iter().filter(|a| &a.task_id == task).count();
        (state.chain.iter().filter(|l| &l.checkpoint.task_id == task).count(), attempts)
    }
}
