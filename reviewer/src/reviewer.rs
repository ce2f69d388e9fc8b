//! The reviewer as a process: takes requests from its pools, carries out as many
//! at a time as it has slots, and acknowledges each when its verdict is out.
//!
//! A crash at any point delivers the request again, and a second verdict on one
//! review is recognised by its ids. This module decides nothing about changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, Consumer, Delivery, Pool, Queue};
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::Coordinator;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::process::Supervisor;
use checkrein_shared::records::ReviewRequest;
use checkrein_shared::signing::SigningKey;
use checkrein_shared::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, StartError};
use crate::pipeline::{self, Context};
use crate::verifiers::{Cache, Isolation, Workshop};

/// How often a request may come back before the reviewer answers that it can't tell.
const PATIENCE: u32 = 5;

/// What a reviewer is made of.
pub struct ReviewerConfig {
    /// Its name; verdicts carry it.
    pub instance: InstanceId,
    /// A folder of its own, for copies of trees and remembered passes.
    pub work_dir: PathBuf,
    /// Runs verifiers.
    pub supervisor: Supervisor,
    /// The pools whose requests it takes.
    pub pools: Vec<String>,
    /// Signs its verdicts.
    pub key: SigningKey,
    /// How many reviews it carries out at a time.
    pub slots: usize,
    /// Where verifiers look for programs: the value of their `PATH`.
    pub path: OsString,
    /// Variables that tell verifiers where tools keep their files, such as `RUSTUP_HOME`. Never credentials.
    pub tools_env: BTreeMap<OsString, OsString>,
    /// What no verifier may read: the data directory, keys. The work folder and each task's target are added.
    pub hidden: Vec<PathBuf>,
    /// How long a request that could not be carried out is held before it is given back.
    pub retry_pause: Duration,
}

/// A reviewer of the kind `rules`.
pub struct Reviewer {
    config: ReviewerConfig,
    pools: Vec<Pool>,
    bus: Arc<dyn Bus>,
    blobs: Arc<dyn Blobs>,
    coordinator: Arc<dyn Coordinator>,
    cache: Cache,
    /// Held for as long as the reviewer lives, so that nobody else uses the work folder.
    _lock: File,
}

/// What the reviews of one reviewer share.
struct Shared {
    instance: InstanceId,
    key: SigningKey,
    workshop: Workshop,
    bus: Arc<dyn Bus>,
    blobs: Arc<dyn Blobs>,
    coordinator: Arc<dyn Coordinator>,
    retry_pause: Duration,
    cancel: CancellationToken,
}

impl Reviewer {
    /// Takes possession of the work folder, and clears away what a killed predecessor left there.
    ///
    /// # Errors
    ///
    /// [`StartError`] where the folder can't be used or is in use, or a pool has no possible name.
    pub fn new(
        config: ReviewerConfig,
        bus: Arc<dyn Bus>,
        blobs: Arc<dyn Blobs>,
        coordinator: Arc<dyn Coordinator>,
    ) -> Result<Self, StartError> {
        let pools = pools(&config.pools)?;
        let failed = |source| StartError::WorkDir { path: config.work_dir.display().to_string(), source };
        let lock = occupy(&config.work_dir).map_err(failed)?;
        let cache = Cache::open(config.work_dir.join("passes")).map_err(failed)?;
        Ok(Self { config, pools, bus, blobs, coordinator, cache, _lock: lock })
    }

    /// Takes requests until `shutdown` is cancelled or the bus is shut down. Reviews that are under way then are given
    /// up; their requests come again.
    ///
    /// # Errors
    ///
    /// [`StartError::Consume`] where the queues can't be consumed.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StartError> {
        let Self { config, pools, bus, blobs, coordinator, cache, _lock } = self;
        let slots = config.slots.max(1);
        let prefetch = u16::try_from(slots).unwrap_or(u16::MAX);
        let mut consumers = Vec::with_capacity(pools.len());
        for pool in pools {
            consumers.push(bus.consume(&Queue::Reviews(pool), prefetch).await.map_err(StartError::Consume)?);
        }
        let isolation = Isolation::probe(&config.supervisor, &config.path, &config.work_dir).await;
        tracing::info!(reviewer = %config.instance, ?isolation, "reviewer is ready");
        let mut hidden = config.hidden;
        hidden.push(config.work_dir.clone());
        let workshop = Workshop {
            work_dir: config.work_dir,
            supervisor: config.supervisor,
            path: config.path,
            tools_env: config.tools_env,
            hidden,
            isolation,
            cache,
        };
        let (instance, key, retry_pause, cancel) = (config.instance, config.key, config.retry_pause, shutdown);
        let shared = Arc::new(Shared { instance, key, workshop, bus, blobs, coordinator, retry_pause, cancel });
        let free = Arc::new(Semaphore::new(slots));
        serve(consumers, &shared, &free).await;
        Ok(())
    }
}

fn pools(names: &[String]) -> Result<Vec<Pool>, StartError> {
    let refuse = |pool: &str, reason: String| StartError::Pool { pool: pool.to_owned(), reason };
    if names.is_empty() {
        return Err(refuse("", "name at least one".to_owned()));
    }
    names.iter().map(|name| name.parse().map_err(|e| refuse(name, format!("{e}")))).collect()
}

/// Makes the folder, takes its lock and removes unfinished runs.
fn occupy(folder: &PathBuf) -> std::io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.try_lock()?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("run-") || name.starts_with("probe-") {
            crate::verifiers::remove(&entry.path())?;
        }
    }
    Ok(lock)
}

/// Takes requests from all queues while there are free slots.
async fn serve(mut consumers: Vec<Box<dyn Consumer>>, shared: &Arc<Shared>, free: &Arc<Semaphore>) {
    let mut reviews = JoinSet::new();
    loop {
        // A slot first: what is taken is begun at once, and what is not stays for other reviewers.
        let taken = async {
            let permit = Arc::clone(free).acquire_owned().await.expect("the semaphore is never closed");
            Some((permit, next_of(&mut consumers).await?))
        };
        let (permit, delivery) = tokio::select! {
            () = shared.cancel.cancelled() => break,
            taken = taken => match taken {
                Some(taken) => taken,
                None => break,
            },
        };
        reviews.spawn(handle(Arc::clone(shared), delivery, permit));
        while reviews.try_join_next().is_some() {}
        // The pool that was served stands last now, so that no pool waits for another one for ever.
        consumers.rotate_left(1);
    }
    // Verifiers end at once when the reviewer is cancelled; their places are cleared before this returns.
    while reviews.join_next().await.is_some() {}
}

/// The next request of any queue; `None` where the bus is shut down. Waiting may be given up without losing one.
async fn next_of(consumers: &mut [Box<dyn Consumer>]) -> Option<Delivery> {
    let mut waiting: Vec<_> = consumers.iter_mut().map(|consumer| consumer.next()).collect();
    std::future::poll_fn(|context| {
        let ready = waiting.iter_mut().find_map(|next| match next.as_mut().poll(context) {
            Poll::Ready(delivery) => Some(delivery),
            Poll::Pending => None,
        });
        ready.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// One request, from delivery to settlement.
async fn handle(shared: Arc<Shared>, delivery: Delivery, permit: OwnedSemaphorePermit) {
    let request: ReviewRequest = match delivery.message.parse("review request") {
        Ok(request) => request,
        Err(error) => {
            tracing::warn!(message = %delivery.message.id, %error, "a review request can't be read");
            settled("rejecting", delivery.reject().await);
            return;
        }
    };
    let review = request.review_id.clone();
    let count = delivery.delivery_count;
    // A panic must not keep the slot and the delivery for ever.
    let work = tokio::spawn(answer(Arc::clone(&shared), request, count));
    let result = match work.await {
        Ok(result) => result,
        Err(panic) => Err(Error::Verdict(panic.to_string())),
    };
    match result {
        Ok(()) => settled("acknowledging", delivery.ack().await),
        // The delivery goes back by itself when its consumer does, and does not count as a failure.
        Err(Error::Interrupted) => {}
        Err(error) => {
            tracing::warn!(review.id = %review, error = %with_causes(&error), "a review could not be carried out");
            tokio::select! {
                () = shared.cancel.cancelled() => {}
                () = tokio::time::sleep(shared.retry_pause) => settled("giving back", delivery.nack_requeue().await),
            }
        }
    }
    drop(permit);
}

fn settled(doing: &str, result: Result<(), checkrein_shared::bus::SettleError>) {
    if let Err(error) = result {
        tracing::debug!(%error, "{doing} a request failed; it will come again");
    }
}

/// Reviews, signs and publishes.
async fn answer(shared: Arc<Shared>, request: ReviewRequest, count: u32) -> Result<(), Error> {
    let now = Timestamp::now();
    let context = Context {
        instance: &shared.instance,
        blobs: shared.blobs.as_ref(),
        coordinator: shared.coordinator.as_ref(),
        workshop: &shared.workshop,
        cancel: &shared.cancel,
        now,
    };
    let verdict = match pipeline::review(&context, &request).await {
        Err(error) if count >= PATIENCE && !matches!(error, Error::Interrupted) => {
            Ok(pipeline::give_up(&context, &request, &error))
        }
        other => other,
    }?;
    tracing::info!(review.id = %request.review_id, verdict = verdict.verdict.as_str(), "review is done");
    let envelope = pipeline::sign(&verdict, &shared.key)?;
    pipeline::publish(shared.blobs.as_ref(), shared.bus.as_ref(), &request, &envelope).await
}
