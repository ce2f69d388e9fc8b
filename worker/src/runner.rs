//! The worker itself: takes jobs from its pools and runs them in its slots.
//!
//! A delivery is acknowledged as soon as the job's lease is durable, so that
//! long work never holds one. What a job does is not decided here: see
//! [`crate::jobs`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, ConsumeError, Consumer, Delivery, Queue};
use checkrein_shared::coordinator::{Coordinator, Error as CoordinatorError, LeaseAnswer, LeaseRequest};
use checkrein_shared::records::{Job, JobMessage};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Services, WorkerConfig};
use crate::orders::{self, Lease, Order};
use crate::room::{self, Cache};
use crate::submit::Backoff;
use crate::{drift, jobs};

/// How long running jobs have to give themselves back when the worker ends.
const EXIT_TIME_MAX: Duration = Duration::from_secs(60);

/// Why a worker could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its cache folder is not to be had.
    #[error("the worker has no cache folder")]
    Cache(#[source] room::Error),
    /// A pool's queue can't be consumed.
    #[error("the worker can't take jobs from pool `{pool}`")]
    Consume {
        /// The pool.
        pool: String,
        /// The cause.
        source: ConsumeError,
    },
}

/// A worker that is ready to run.
pub struct Worker {
    services: Services,
}

impl Worker {
    /// Takes the cache folder and sweeps what a dead worker left in it.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] where another worker uses it, or the file system fails.
    pub fn new(
        config: WorkerConfig,
        bus: Arc<dyn Bus>,
        blobs: Arc<dyn Blobs>,
        coordinator: Arc<dyn Coordinator>,
    ) -> Result<Self, Error> {
        let cache = Arc::new(Cache::open(&config.cache_dir).map_err(Error::Cache)?);
        Ok(Self { services: Services { config: Arc::new(config), cache, bus, blobs, coordinator } })
    }

    /// Runs until `shutdown`, or until the bus is shut down. Then every running job keeps what it has, gives itself
    /// back, and this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Consume`] where a queue is not there.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let mut consumers = Vec::new();
        for pool in &self.services.config.pools {
            let consumer = self.services.bus.consume(&Queue::Jobs(pool.clone()), 1).await;
            consumers.push(consumer.map_err(|source| Error::Consume { pool: pool.to_string(), source })?);
        }
        let over = shutdown.child_token();
        let watcher = tokio::spawn(drift::watch(self.services.clone(), over.clone()));
        self.take_jobs(&mut consumers, &over).await;
        over.cancel();
        if let Err(error) = watcher.await {
            tracing::error!(%error, "the drift watcher ended badly");
        }
        Ok(())
    }

    async fn take_jobs(&self, consumers: &mut [Box<dyn Consumer>], over: &CancellationToken) {
        let slots = Arc::new(Semaphore::new(self.services.config.slots.max(1)));
        let mut running = JoinSet::new();
        loop {
            let next = async {
                let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
                first(consumers).await.map(|delivery| (slot, delivery))
            };
            let taken = tokio::select! {
                taken = next => taken,
                () = over.cancelled() => None,
                Some(ended) = running.join_next(), if !running.is_empty() => {
                    note_panic(ended);
                    continue;
                }
            };
            let Some((slot, delivery)) = taken else { break };
            let (services, over) = (self.services.clone(), over.clone());
            running.spawn(async move {
                handle(services, delivery, over).await;
                drop(slot);
            });
        }
        over.cancel();
        let ending = async {
            while let Some(ended) = running.join_next().await {
                note_panic(ended);
            }
        };
        if tokio::time::timeout(EXIT_TIME_MAX, ending).await.is_err() {
            tracing::warn!("jobs that could not report in time are given up; their leases will expire");
        }
    }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a job ended badly; its lease will expire");
    }
}

/// The first delivery that any of the consumers has; `None` when none will ever have one.
async fn first(consumers: &mut [Box<dyn Consumer>]) -> Option<Delivery> {
    type Next<'a> = Pin<Box<dyn Future<Output = Option<Delivery>> + Send + 'a>>;
    let mut waiting: Vec<Next<'_>> = consumers.iter_mut().map(|consumer| consumer.next()).collect();
    std::future::poll_fn(move |context| {
        let mut index = 0;
        while index < waiting.len() {
            match waiting[index].as_mut().poll(context) {
                Poll::Ready(Some(delivery)) => return Poll::Ready(Some(delivery)),
                Poll::Ready(None) => drop(waiting.swap_remove(index)),
                Poll::Pending => index += 1,
            }
        }
        if waiting.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// From a delivery to the end of its job.
async fn handle(services: Services, delivery: Delivery, over: CancellationToken) {
    let message: JobMessage = match delivery.message.parse("job message") {
        Ok(message) => message,
        Err(error) => {
            tracing::error!(message.id = %delivery.message.id, %error, "a message is no job and is put aside");
            settle(delivery.reject().await);
            return;
        }
    };
    let granted = tokio::select! {
        granted = lease(&services, &message) => granted,
        // Dropping the delivery gives it back.
        () = over.cancelled() => return,
    };
    // The lease is durable, or the job is no longer wanted: either way the message has done its work.
    settle(delivery.ack().await);
    match granted {
        Ok((job, length)) => run_leased(services, job, length, over).await,
        Err(reason) => tracing::info!(job.id = %message.job_id, reason, "the job is not wanted any more"),
    }
}

fn settle(settled: Result<(), checkrein_shared::bus::SettleError>) {
    if let Err(error) = settled {
        tracing::info!(%error, "a delivery will come again and be recognised");
    }
}

/// Asks for the job until there is an answer. The delivery is held meanwhile: giving it back would burn its limit.
async fn lease(services: &Services, message: &JobMessage) -> Result<(Job, Duration), String> {
    let mut backoff = Backoff::new();
    loop {
        let request = LeaseRequest {
            task_id: message.task_id.clone(),
            job_id: message.job_id.clone(),
            epoch: message.epoch,
            worker: services.config.instance.clone(),
        };
        match services.coordinator.take_lease(request).await {
            Ok(LeaseAnswer::Granted { job, lease }) => return Ok((*job, lease.to_duration())),
            Ok(LeaseAnswer::Refused { reason }) | Err(CoordinatorError::Refused(reason)) => return Err(reason),
            Err(CoordinatorError::Unavailable(reason)) => {
                tracing::warn!(job.id = %message.job_id, reason, "the lease is not to be had now");
            }
        }
        backoff.wait().await;
    }
}

/// Runs a job while another task keeps its lease.
async fn run_leased(services: Services, job: Job, length: Duration, over: CancellationToken) {
    let (giver, orders) = orders::channel();
    let lease = Lease { task: job.task_id.clone(), epoch: job.epoch, worker: services.config.instance.clone(), length };
    let mut helpers = JoinSet::new();
    helpers.spawn(orders::keep(Arc::clone(&services.coordinator), lease, giver.clone()));
    helpers.spawn(async move {
        over.cancelled().await;
        giver.give(Order::Exit);
        // Keeps the giver alive: without one, orders would never come again.
        std::future::pending::<()>().await;
    });
    tracing::info!(job.id = %job.job_id, job.kind = job.kind.as_str(), "the job begins");
    jobs::run(&services, &job, &orders).await;
    tracing::info!(job.id = %job.job_id, "the job is over");
}
