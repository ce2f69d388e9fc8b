//! The orchestrator as one part: opened over a store, run until shutdown.

use std::sync::Arc;

use checkrein_shared::api::Api;
use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, ConsumeError, Queue};
use checkrein_shared::coordinator::Coordinator;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::signing::KeyRing;
use tokio_util::sync::CancellationToken;

use crate::background;
use crate::clock::Leases;
use crate::coordinator::{LocalCoordinator, Refusals};
use crate::dead;
use crate::engine::{self, Engine, Routes};
use crate::inbound::Inbound;
use crate::local_api::LocalApi;
use crate::store::Store;

/// What an orchestrator is made of.
pub struct Config {
    /// Its name.
    pub instance: InstanceId,
    /// Where messages go.
    pub routes: Routes,
    /// Whose signatures count.
    pub keys: Arc<KeyRing>,
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
    config: Config,
}

impl Orchestrator {
    /// Puts the parts together. Nothing runs yet.
    pub fn new(config: Config, store: Arc<dyn Store>, blobs: Arc<dyn Blobs>, bus: Arc<dyn Bus>) -> Self {
        let engine = Arc::new(Engine::new(store, blobs, config.instance.clone(), config.routes.clone()));
        Self { engine, leases: Arc::default(), refusals: Arc::default(), bus, config }
    }

    /// What people's tools talk to.
    pub fn api(&self) -> Arc<dyn Api> {
        Arc::new(LocalApi::new(self.engine.clone()))
    }

    /// What workers and reviewers talk to.
    pub fn coordinator(&self) -> Arc<dyn Coordinator> {
        Arc::new(LocalCoordinator::new(self.engine.clone(), self.leases.clone(), self.refusals.clone()))
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

    /// Works until shutdown.
    ///
    /// # Errors
    ///
    /// [`StartError`] where a queue can't be consumed.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<(), StartError> {
        let inbound = Inbound {
            engine: self.engine.clone(),
            leases: self.leases.clone(),
            refusals: self.refusals.clone(),
            keys: self.config.keys.clone(),
        };
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
