//! What the core needs besides the task, loaded from blobs by digest and kept
//! in small caches: blobs never change, so a cache can't be wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::json;
use checkrein_shared::policy::{CompiledPolicy, ResolvedPolicy};
use checkrein_shared::records::{Checkpoint, EffectEntry};
use checkrein_shared::tree::{Changeset, Entry, diff};

use crate::lifecycle::{Change, Context, EventKind, Task};

/// The largest record that is read from a blob: 8 MiB.
pub(crate) const RECORD_BYTES_MAX: u64 = 8 << 20;

/// How many records of each kind are kept.
const CACHED_MAX: usize = 64;

/// Why an input could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The blob is missing or damaged.
    #[error("can't read the {what}")]
    Blob {
        /// The record that was expected.
        what: &'static str,
        /// The cause.
        source: blob::Error,
    },
    /// The blob is no such record.
    #[error("the {what} in blob {digest} can't be used: {why}")]
    Record {
        /// The record that was expected.
        what: &'static str,
        /// The blob.
        digest: Digest,
        /// What is wrong with it.
        why: String,
    },
}

/// Everything that one decision may look at.
#[derive(Debug)]
pub(crate) struct Inputs {
    policy: Arc<CompiledPolicy>,
    head: Option<Arc<Checkpoint>>,
    change: Arc<Change>,
    unaffected: BTreeSet<String>,
    /// Entries of the effects ledger; whoever has the store fills them in.
    pub(crate) effects: BTreeMap<Digest, EffectEntry>,
}

impl Inputs {
    pub(crate) fn context<'a>(&'a self, orchestrator: &'a InstanceId, version: u64) -> Context<'a> {
        Context {
            policy: &self.policy,
            head: self.head.as_deref(),
            change: &self.change,
            effects: &self.effects,
            unaffected: &self.unaffected,
            orchestrator,
            version,
        }
    }
}

/// Loads and keeps records.
pub(crate) struct Loader {
    blobs: Arc<dyn Blobs>,
    policies: Cache<CompiledPolicy>,
    checkpoints: Cache<Checkpoint>,
    changes: Cache<Change>,
}

impl Loader {
    pub(crate) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, policies: Cache::new(), checkpoints: Cache::new(), changes: Cache::new() }
    }

    /// Remembers a policy that somebody has compiled already.
    pub(crate) fn know_policy(&self, policy: Arc<CompiledPolicy>) {
        self.policies.keep(policy.digest(), policy);
    }

    /// Loads what a decision about `event` needs.
    pub(crate) async fn inputs(&self, task: &Task, event: &EventKind) -> Result<Inputs, Error> {
        let head = match &task.head {
            Some(head) => Some(self.checkpoint(head.record).await?),
            None => None,
        };
        let newest = match event {
            EventKind::CheckpointWritten { checkpoint, .. } => Some(checkpoint.as_ref()),
            _ => head.as_deref(),
        };
        let change = match newest {
            Some(checkpoint) => self.change(checkpoint.changesets.proposed.hash).await?,
            None => Arc::new(Change::default()),
        };
        let policy = self.policy(task.policy.digest).await?;
        let unaffected = match event {
            EventKind::CheckpointWritten { checkpoint, .. } if checkpoint.gate => {
                crate::inherit::unaffected(self.blobs.as_ref(), task, checkpoint, &policy).await
            }
            _ => BTreeSet::new(),
        };
        Ok(Inputs { policy, head, change, unaffected, effects: BTreeMap::new() })
    }

    /// The policy that a task pins, compiled.
    pub(crate) async fn policy(&self, digest: Digest) -> Result<Arc<CompiledPolicy>, Error> {
        let what = "policy";
        if let Some(policy) = self.policies.get(digest) {
            return Ok(policy);
        }
        let resolved: ResolvedPolicy = self.record(what, digest).await?;
        let compiled = resolved.compile().map_err(|e| Error::Record { what, digest, why: e.to_string() })?;
        Ok(self.policies.put(digest, compiled))
    }

    /// A checkpoint of the chain, checked against its own hash.
    pub(crate) async fn checkpoint(&self, digest: Digest) -> Result<Arc<Checkpoint>, Error> {
        let what = "checkpoint";
        if let Some(checkpoint) = self.checkpoints.get(digest) {
            return Ok(checkpoint);
        }
        let checkpoint: Checkpoint = self.record(what, digest).await?;
        checkpoint.check_hash().map_err(|e| Error::Record { what, digest, why: e.to_string() })?;
        Ok(self.checkpoints.put(digest, checkpoint))
    }

    /// A changeset.
    pub(crate) async fn changeset(&self, digest: Digest) -> Result<Changeset, Error> {
        self.record("changeset", digest).await
    }

    async fn change(&self, digest: Digest) -> Result<Arc<Change>, Error> {
        if let Some(change) = self.changes.get(digest) {
            return Ok(change);
        }
        let changeset = self.changeset(digest).await?;
        // Counted from the content itself, never taken from what a worker says about it.
        let limits = diff::Limits::default();
        let mut rendered = diff::render(self.blobs.as_ref(), &changeset, &limits).await;
        if rendered.not_shown.iter().any(|left_out| left_out.reason == diff::Reason::Unavailable) {
            // What can't be read just now would count as nothing, and be remembered so.
            self.check_readable(&changeset, &limits).await?;
            rendered = diff::render(self.blobs.as_ref(), &changeset, &limits).await;
        }
        let paths: Vec<String> = changeset.touched().into_iter().map(ToString::to_string).collect();
        let lines = rendered.stats.lines_added.saturating_add(rendered.stats.lines_removed);
        let change = Change { files: changeset.changes().len() as u64, lines, paths };
        Ok(self.changes.put(digest, change))
    }

    /// An error that may pass is an error; what is missing or damaged for good is not shown and not counted.
    async fn check_readable(&self, changeset: &Changeset, limits: &diff::Limits) -> Result<(), Error> {
        let mut contents = BTreeSet::new();
        for change in changeset.changes() {
            contents.extend([&change.old, &change.new].into_iter().flatten().filter_map(Entry::blob));
        }
        for content in contents {
            if let Err(source @ blob::Error::Io { .. }) = self.blobs.get(content, limits.content_bytes).await {
                return Err(Error::Blob { what: "changed file", source });
            }
        }
        Ok(())
    }

    /// A record from a blob.
    pub(crate) async fn record<T: serde::de::DeserializeOwned>(
        &self,
        what: &'static str,
        digest: Digest,
    ) -> Result<T, Error> {
        let bytes = self.blobs.get(digest, RECORD_BYTES_MAX).await.map_err(|source| Error::Blob { what, source })?;
        json::parse_as(what, &bytes).map_err(|e| Error::Record { what, digest, why: with_causes(&e) })
    }
}

/// The newest few values by digest.
struct Cache<T> {
    inner: Mutex<Newest<T>>,
}

struct Newest<T> {
    values: BTreeMap<Digest, Arc<T>>,
    order: VecDeque<Digest>,
}

impl<T> Cache<T> {
    fn new() -> Self {
        Self { inner: Mutex::new(Newest { values: BTreeMap::new(), order: VecDeque::new() }) }
    }

    fn get(&self, digest: Digest) -> Option<Arc<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).values.get(&digest).cloned()
    }

    fn put(&self, digest: Digest, value: T) -> Arc<T> {
        let value = Arc::new(value);
        self.keep(digest, value.clone());
        value
    }

    fn keep(&self, digest: Digest, value: Arc<T>) {
        let mut newest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.values.insert(digest, value).is_none() {
            newest.order.push_back(digest);
        }
        while newest.order.len() > CACHED_MAX {
            if let Some(oldest) = newest.order.pop_front() {
                newest.values.remove(&oldest);
            }
        }
    }
}
