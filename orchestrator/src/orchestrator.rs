//! The orchestrator as one part: opened over a store, run until shutdown.

use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::api::Api;
use checkrein_shared::blob::{Blobs, Sweep};
use checkrein_shared::bus::{Bus, ConsumeError, DeathReason, Message, Queue};
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{self, Coordinator, Receipt};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, InstanceId, TaskId};
use checkrein_shared::signing::KeyRing;
use tokio_util::sync::CancellationToken;

use crate::background;
use crate::clock::Clock;
use crate::coordinator::{LocalCoordinator, Refusals};
use crate::dead;
use crate::engine::{self, Engine, Routes};
use crate::gc::Collector;
use crate::inbound::{Inbound, Refused};
use crate::leases::Leases;
use crate::local_api::LocalApi;
use crate::store::{Prune, Store};

/// What an orchestrator is made of.
pub struct Config {
    /// Its name.
    pub instance: InstanceId,
    /// Where messages go.
    pub routes: Routes,
    /// Whose signatures count.
    pub keys: Arc<KeyRing>,
    /// The clock: [`crate::SystemClock`], unless time is simulated.
    pub clock: Arc<dyn Clock>,
    /// Whether workers, reviewers and the bus live in this process, so that none of them survives it.
    pub all_inside: bool,
}

/// Why an orchestrator could not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A queue can't be declared or consumed.
    #[error("a queue can't be used")]
    Queue(#[from] ConsumeError),
    /// What was running can't be recovered.
    #[error("the tasks that were running can't be recovered")]
    Recover(#[from] engine::Error),
}

/// The orchestrator.
pub struct Orchestrator {
    engine: Arc<Engine>,
    leases: Arc<Leases>,
    refusals: Arc<Refusals>,
    bus: Arc<dyn Bus>,
    collector: Option<Arc<Collector>>,
    config: Config,
}

impl Orchestrator {
    /// Puts the parts together. Nothing runs yet.
    pub fn new(config: Config, store: Arc<dyn Store>, blobs: Arc<dyn Blobs>, bus: Arc<dyn Bus>) -> Self {
        let Config { instance, routes, clock, .. } = &config;
        let engine = Arc::new(Engine::new(store, blobs, instance.clone(), routes.clone(), clock.clone()));
        let leases = Arc::new(Leases::new(clock.clone()));
        Self { engine, leases, refusals: Arc::default(), bus, collector: None, config }
    }

    /// Lets people collect garbage in the store and the blobs, which must be those that it was made of.
    #[must_use]
    pub fn collecting(mut self, store: Arc<dyn Prune>, blobs: Arc<dyn Sweep>) -> Self {
        self.collector = Some(Arc::new(Collector::new(store, blobs, self.config.clock.clone())));
        self
    }

    /// Collects garbage now and then until shutdown.
    pub async fn keep_clean(&self, shutdown: CancellationToken) {
        match &self.collector {
            Some(collector) => collector.run(shutdown).await,
            None => shutdown.cancelled().await,
        }
    }

    /// What people's tools talk to.
    pub fn api(&self) -> Arc<dyn Api> {
        Arc::new(LocalApi::new(self.engine.clone(), self.collector.clone()))
    }

    /// What workers and reviewers talk to.
    pub fn coordinator(&self) -> Arc<dyn Coordinator> {
        Arc::new(self.local_coordinator())
    }

    fn local_coordinator(&self) -> LocalCoordinator {
        LocalCoordinator::new(self.engine.clone(), self.leases.clone(), self.refusals.clone())
    }

    /// Declares the queues and takes up what was running. Workers and reviewers may start when this returns.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing runs then.
    pub async fn prepare(&self) -> Result<(), StartError> {
        let Routes { jobs, reviews } = self.config.routes.clone();
        for queue in [Queue::Dead, Queue::Jobs(jobs), Queue::Reviews(reviews), Queue::InWorker, Queue::InReviewer] {
            self.bus.declare(&queue).await?;
        }
        background::recover(&self.engine, &self.leases, self.config.all_inside).await?;
        Ok(())
    }

    fn inbound(&self) -> Inbound {
        Inbound {
            engine: self.engine.clone(),
            leases: self.leases.clone(),
            refusals: self.refusals.clone(),
            keys: self.config.keys.clone(),
        }
    }

    /// Works until shutdown.
    ///
    /// # Errors
    ///
    /// [`StartError`] where a queue can't be consumed.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<(), StartError> {
        let inbound = self.inbound();
        let bus = self.bus.as_ref();
        let consumers = async {
            tokio::try_join!(
                inbound.run(bus, Queue::InWorker, shutdown.clone()),
                inbound.run(bus, Queue::InReviewer, shutdown.clone()),
                dead::run(self.engine.clone(), bus, shutdown.clone()),
            )
        };
        let background = async {
            tokio::join!(
                background::relay(self.engine.clone(), self.bus.clone(), shutdown.clone()),
                background::timers(self.engine.clone(), shutdown.clone()),
                background::leases(self.engine.clone(), self.leases.clone(), shutdown.clone()),
            )
        };
        let (consumed, _) = tokio::join!(consumers, background);
        consumed?;
        Ok(())
    }
}

/// What came of handing a message over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// What follows from it is stored: acknowledge it.
    Stored,
    /// It will never be usable, and why: to the dead letters.
    Refused(String),
    /// Something is unavailable, and what: hand it over again later.
    Later(String),
}

/// [`Orchestrator::run`] taken apart: single turns, for a driver that decides itself when each is taken.
/// Nothing here waits for time to pass.
impl Orchestrator {
    /// The driver of the core.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Publishes one batch of what was committed and is not marked as delivered; says whether there may be more.
    ///
    /// # Errors
    ///
    /// Why messages stay in the outbox.
    pub async fn relay_once(&self) -> Result<bool, String> {
        background::publish_pending(&self.engine, self.bus.as_ref()).await
    }

    /// Fires the timers that are due and says how long it may take until the next.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn fire_timers_once(&self) -> Result<Duration, engine::Error> {
        background::fire_due(&self.engine).await
    }

    /// Expires the leases that have run out.
    pub async fn expire_leases_once(&self) {
        background::expire(&self.engine, &self.leases).await;
    }

    /// Takes a message of a worker or a reviewer.
    pub async fn take(&self, message: &Message) -> Taken {
        match self.inbound().take(message).await {
            Ok(()) => Taken::Stored,
            Err(Refused::ForGood(why)) => Taken::Refused(why),
            Err(Refused::ForNow(error)) => Taken::Later(with_causes(&error)),
        }
    }

    /// Takes a message that nobody could handle.
    pub async fn take_dead(&self, message: &Message, death: Option<DeathReason>) -> Taken {
        match dead::tell(&self.engine, message, death).await {
            Ok(()) => Taken::Stored,
            Err(error) => Taken::Later(with_causes(&error)),
        }
    }

    /// What has become of a checkpoint so far; `None`: nothing yet.
    ///
    /// # Errors
    ///
    /// As [`Coordinator::receipt`].
    pub async fn receipt_now(
        &self,
        task: &TaskId,
        checkpoint: &CheckpointId,
        hash: Digest,
    ) -> Result<Option<Receipt>, coordinator::Error> {
        self.local_coordinator().receipt_now(task, checkpoint, hash).await
    }
}
