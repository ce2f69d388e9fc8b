//! Collecting garbage: tasks that no policy keeps any more, and blobs that no
//! kept record refers to.
//!
//! [`refs`] knows what each record refers to, [`mark`] follows all of it ([`seen`]
//! remembers what it met), [`retire`] prunes old tasks, [`sweep`] removes the rest. Nothing is removed
//! where anything that is referred to is missing. Deciding what a task needs is
//! not done here: whatever a record of it names stays for as long as the record.

mod mark;
pub(crate) mod refs;
mod retire;
pub(crate) mod seen;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::api::{CollectReport, Epitaph};
use checkrein_shared::blob::{self, Blobs, Sweep};
use checkrein_shared::causes::with_causes;
use checkrein_shared::ids::TaskId;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine;
use crate::inputs::Loader;
use crate::store::{self, CommitError, Prune};

/// How young a blob must be to stay although nothing refers to it yet.
const YOUNG: Duration = Duration::from_secs(24 * 3_600);

/// How long after the start garbage is collected for the first time.
const FIRST: Duration = Duration::from_secs(15 * 60);

/// How often it is collected.
const EVERY: Duration = Duration::from_secs(24 * 3_600);

/// How long the background work rests after each bit of work, so that others come first.
const REST: Duration = Duration::from_millis(2);

/// How often it begins anew because a task changed meanwhile.
const TRIES_MAX: u32 = 5;

/// Why garbage could not be collected. Nothing is removed then but what was garbage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that a record refers to is missing or damaged.
    #[error("{count} blobs that records refer to are missing or damaged, so nothing was removed: {}", .first.join("; "))]
    Damage {
        /// How many.
        count: u64,
        /// The first of them.
        first: Vec<String>,
    },
    /// The store can't be read or written.
    #[error("the store can't be read")]
    Store(#[from] store::Error),
    /// What was pruned could not be journaled.
    #[error("what was pruned could not be stored")]
    Commit(#[from] CommitError),
    /// A stored task can't be read.
    #[error("a task can't be read")]
    Task(#[from] engine::Error),
    /// The blob store failed.
    #[error("the blobs can't be read or removed")]
    Blob(#[from] blob::Error),
    /// Tasks kept changing.
    #[error("the tasks that were to be pruned kept changing; try again")]
    Busy,
}

/// Collects garbage; one at a time.
pub struct Collector {
    store: Arc<dyn Prune>,
    blobs: Arc<dyn Sweep>,
    loader: Loader,
    clock: Arc<dyn Clock>,
    alone: tokio::sync::Mutex<()>,
}

impl Collector {
    /// Puts the parts together.
    pub fn new(store: Arc<dyn Prune>, blobs: Arc<dyn Sweep>, clock: Arc<dyn Clock>) -> Self {
        let loader = Loader::new(blobs.clone() as Arc<dyn Blobs>);
        Self { store, blobs, loader, clock, alone: tokio::sync::Mutex::new(()) }
    }

    /// Collects once; with `dry_run` it only says what would go.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn collect(&self, dry_run: bool) -> Result<CollectReport, Error> {
        self.collect_resting(dry_run, Duration::ZERO).await
    }

    async fn collect_resting(&self, dry_run: bool, rest: Duration) -> Result<CollectReport, Error> {
        let _alone = self.alone.lock().await;
        for _ in 0..TRIES_MAX {
            if let Some(report) = self.once(dry_run, rest).await? {
                return Ok(report);
            }
        }
        Err(Error::Busy)
    }

    /// `None` where a task changed that was to be pruned: what was marked no longer holds then.
    async fn once(&self, dry_run: bool, rest: Duration) -> Result<Option<CollectReport>, Error> {
        let now = self.clock.now();
        let retired = retire::due(self.store.as_ref(), &self.loader, now).await?;
        let mut marked = mark::mark(self.store.as_ref(), self.blobs.as_ref(), &retired, rest).await?;
        let before = marked.young_from(now, YOUNG);
        let mut report = CollectReport { dry_run, young_from: Some(before), ..CollectReport::default() };
        report.pruned = retired.iter().map(|forget| forget.task.clone()).collect();
        let garbage = sweep::survey(self.blobs.as_ref(), &mut marked, before, &mut report, rest).await?;
        if dry_run {
            let segments = self.store.droppable().await?;
            segments.iter().for_each(|segment| report.segments.add(segment.bytes));
            return Ok(Some(report));
        }
        match self.store.forget(retired, now).await {
            Err(CommitError::Conflict { .. }) => return Ok(None),
            forgotten => forgotten?,
        }
        report.freed = sweep::remove(self.blobs.as_ref(), garbage, before, rest).await?;
        loop {
            let dropped = self.store.drop_front(now).await?;
            dropped.iter().for_each(|segment| report.segments.add(segment.bytes));
            if dropped.is_empty() {
                return Ok(Some(report));
            }
        }
    }

    /// What is left of a task that was pruned.
    pub(crate) async fn epitaph(&self, task: &TaskId) -> Result<Option<Epitaph>, Error> {
        Ok(self.store.tombstone(task).await?.and_then(retire::epitaph))
    }

    /// What is left of all tasks that were pruned.
    pub(crate) async fn epitaphs(&self) -> Result<Vec<Epitaph>, Error> {
        retire::epitaphs(self.store.as_ref()).await
    }

    /// Collects now and then until shutdown, slowly.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let mut wait = FIRST;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let collected = tokio::select! {
                () = shutdown.cancelled() => return,
                collected = self.collect_resting(false, REST) => collected,
            };
            match collected {
                Ok(report) => tracing::info!(
                    blobs = report.freed.count,
                    bytes = report.freed.bytes,
                    pruned = report.pruned.len(),
                    segments = report.segments.count,
                    "collected garbage"
                ),
                Err(error) => tracing::error!(error = %with_causes(&error), "garbage can't be collected"),
            }
            wait = EVERY;
        }
    }
}

/// Lets others work, and rests for a moment where there is time.
async fn breathe(rest: Duration) {
    if rest.is_zero() { tokio::task::yield_now().await } else { tokio::time::sleep(rest).await }
}
