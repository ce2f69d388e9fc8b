//! A running reviewer with everything that it talks to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checkrein_reviewer::{Reviewer, ReviewerConfig, Tools};
use checkrein_shared::blob::{Blobs, FsBlobs};
use checkrein_shared::bus::{Bus, Consumer, EmbeddedBus, Message, Queue};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::process::Supervisor;
use checkrein_shared::records::{EvidenceRef, Finding, ReviewRequest, Role, Verdict, VerdictMessage};
use checkrein_shared::signing::{Envelope, KeyRecord, KeyRing, PayloadType, SigningKey};
use checkrein_shared::time::Timestamp;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::coordinator::Current;
use super::task::{Stored, Task};

/// Longer than any of these reviews takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A test: its name and what it does.
pub(crate) type Test = (&'static str, fn());

/// Makes [`Test`]s from asynchronous functions, so that no name is written twice.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        vec![$((stringify!($name), (|| $crate::bench::block_on($name())) as fn())),*]
    };
}
pub(crate) use tests;

pub(crate) fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) target: PathBuf,
    pub(crate) blobs: FsBlobs,
    pub(crate) bus: EmbeddedBus,
    pub(crate) current: Arc<Current>,
    keys: KeyRing,
    verdicts: Box<dyn Consumer>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let target = root.join("project");
        std::fs::create_dir(&target).unwrap();
        let blobs = FsBlobs::open(root.join("data/blobs")).unwrap_or_else(|_| {
            std::fs::create_dir_all(root.join("data")).unwrap();
            FsBlobs::open(root.join("data/blobs")).unwrap()
        });
        let bus = EmbeddedBus::new();
        for pool in ["default", "other"] {
            bus.declare(&Queue::Reviews(pool.parse().unwrap())).await.unwrap();
        }
        let verdicts = bus.consume(&Queue::InReviewer, 10).await.unwrap();
        let current = Arc::new(Current::default());
        let key = SigningKey::from_random(&Zeroizing::new([7; 32]));
        let mut keys = KeyRing::new();
        let since = Timestamp::from_millis(0);
        keys.add(KeyRecord::new(key.public_key(), Role::Reviewer, "reviewer-1".parse().unwrap(), since)).unwrap();
        let tools = Tools::find(|name| std::env::var_os(name));
        let config = ReviewerConfig {
            instance: "reviewer-1".parse().unwrap(),
            work_dir: root.join("data/reviewer"),
            supervisor: Supervisor::current_exe(),
            pools: vec!["default".into(), "other".into()],
            key,
            slots: 1,
            path: std::env::var_os("PATH").unwrap(),
            tools_env: tools.env,
            hidden: tools.hidden.into_iter().chain([root.join("data")]).collect(),
            retry_pause: Duration::from_millis(10),
        };
        let shutdown = CancellationToken::new();
        let reviewer =
            Reviewer::new(config, Arc::new(bus.clone()), Arc::new(blobs.clone()), Arc::clone(&current) as _).unwrap();
        let stop = shutdown.clone();
        let running = tokio::spawn(async move { reviewer.run(stop).await.unwrap() });
        Self { dir, target, blobs, bus, current, keys, verdicts, shutdown, running }
    }

    /// Stores a task, makes it current, and has it reviewed.
    pub(crate) async fn review(&mut self, task: &Task) -> Verdict {
        let stored = self.store(task).await;
        self.ask(&stored.request).await
    }

    pub(crate) async fn store(&self, task: &Task) -> Stored {
        let stored = task.store(&self.blobs, &self.target).await;
        self.current.set(Some(stored.request.bindings.clone()));
        stored
    }

    /// Sends a request and waits for the verdict, whose signature must be good.
    pub(crate) async fn ask(&mut self, request: &ReviewRequest) -> Verdict {
        self.send("default", request).await;
        self.verdict().await
    }

    pub(crate) async fn send(&self, pool: &str, request: &ReviewRequest) {
        let queue = Queue::Reviews(pool.parse().unwrap());
        let id = "m-1".parse().unwrap();
        let message = Message::new(id, "review", request.task_id.clone(), 1, queue, request).unwrap();
        self.bus.publish(message).await.unwrap();
    }

    pub(crate) async fn verdict(&mut self) -> Verdict {
        let delivery = tokio::time::timeout(PATIENCE, self.verdicts.next()).await.expect("a verdict").unwrap();
        let message: VerdictMessage = delivery.message.parse("verdict message").unwrap();
        delivery.ack().await.unwrap();
        let envelope = self.blobs.get(message.envelope, 16 << 20).await.unwrap();
        let envelope: Envelope = json::parse_as("envelope", &envelope).unwrap();
        let verified = self.keys.verify(&envelope, PayloadType::Verdict, Role::Reviewer, Timestamp::now()).unwrap();
        let verdict: Verdict = json::parse_as("verdict", &verified.payload).unwrap();
        assert_eq!((&verdict.review_id, &verdict.reviewer.identity), (&message.review_id, &verified.instance));
        assert_eq!(verdict.checkpoint_hash, verdict.bindings.checkpoint_hash);
        verdict
    }

    /// The text of evidence that a verdict lists.
    pub(crate) async fn text(&self, verdict: &Verdict, reference: &EvidenceRef) -> String {
        let evidence = &verdict.evidence.entries[reference];
        assert_eq!(evidence.produced_by.role, Role::Reviewer);
        String::from_utf8(self.blobs.get(evidence.digest, 16 << 20).await.unwrap()).unwrap()
    }

    /// The first log of a verifier.
    pub(crate) async fn log(&self, verdict: &Verdict) -> String {
        let is_log = |r: &&EvidenceRef| r.as_str().starts_with("log:") && r.as_str().ends_with("/1");
        self.text(verdict, verdict.evidence.entries.keys().find(is_log).unwrap()).await
    }

    /// Where a blob lies on the disk.
    pub(crate) fn file_of(&self, digest: Digest) -> PathBuf {
        let hex = digest.to_hex();
        let found = walk(self.blobs.root())
            .into_iter()
            .find(|p| p.file_name().is_some_and(|n| hex.ends_with(n.to_str().unwrap())));
        found.unwrap()
    }

    /// Stops the reviewer. Nothing of its runs may be left.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.running).await.expect("the reviewer ends").unwrap();
        let left: Vec<PathBuf> =
            std::fs::read_dir(self.dir.path().join("data/reviewer")).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.iter().all(|p| p.ends_with("lock") || p.ends_with("passes")), "{left:?}");
    }
}

fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

/// The findings of one check.
pub(crate) fn of<'a>(verdict: &'a Verdict, check: &str) -> Vec<&'a Finding> {
    verdict.findings.iter().filter(|f| f.check == check).collect()
}
