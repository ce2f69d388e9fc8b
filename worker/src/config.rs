//! What a worker is given by whoever starts it.
//!
//! It reads no file and no environment: the composition root does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, Pool};
use checkrein_shared::coordinator::Coordinator;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::process::Supervisor;
use checkrein_shared::records::{Producer, Role};

use crate::environment::HostEnvironment;
use crate::room::Cache;

/// The settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The name of this process.
    pub instance: InstanceId,
    /// A folder of the worker's own; everything in it may vanish between two starts.
    pub cache_dir: PathBuf,
    /// Runs commands.
    pub supervisor: Supervisor,
    /// The pools whose jobs are taken.
    pub pools: Vec<Pool>,
    /// How many jobs run at a time; at least one.
    pub slots: usize,
    /// The variables of this process, from which commands get what their task names.
    pub environment: HostEnvironment,
    /// Folders that no command may read: the data directory, keys.
    pub hidden: Vec<PathBuf>,
    /// Credentials of the user: what no command may read that has not been given the user's home.
    pub credentials: Vec<PathBuf>,
    /// How long a running command may go on after a pause was asked for.
    pub park_grace: Duration,
    /// How long a command may go on after SIGTERM.
    pub kill_grace: Duration,
    /// How often a running agent's progress is saved, where it leaves any.
    pub save_interval: Duration,
    /// How often targets are measured while a verdict on them is awaited or in force.
    pub drift_interval: Duration,
}

impl WorkerConfig {
    /// Settings with the usual times: one slot, two minutes to end before a pause, five seconds after SIGTERM,
    /// progress saved every 30 seconds, and a look at the targets every 300 ms.
    pub fn new(instance: InstanceId, cache_dir: PathBuf, supervisor: Supervisor, pools: Vec<Pool>) -> Self {
        Self {
            instance,
            cache_dir,
            supervisor,
            pools,
            slots: 1,
            environment: HostEnvironment::default(),
            hidden: Vec::new(),
            credentials: Vec::new(),
            park_grace: Duration::from_secs(120),
            kill_grace: Duration::from_secs(5),
            save_interval: Duration::from_secs(30),
            drift_interval: Duration::from_millis(300),
        }
    }
}

/// What every job of a worker works with.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) config: Arc<WorkerConfig>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) coordinator: Arc<dyn Coordinator>,
}

impl Services {
    /// Who makes this worker's evidence.
    pub(crate) fn producer(&self) -> Producer {
        Producer { role: Role::Worker, instance: self.config.instance.clone() }
    }
}
