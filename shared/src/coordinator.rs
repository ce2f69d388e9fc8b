//! What workers and reviewers ask the orchestrator and need an answer to:
//! leases, heartbeats, receipts, redeeming, effects, drift and currency.
//!
//! Everything else travels as records over the bus. In one process the
//! orchestrator implements this seam itself; apart, it is HTTP.

mod effects;
mod saving;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{CheckpointId, GrantId, InstanceId, JobId, RootId, TaskId};
use crate::records::{Bindings, Job};
use crate::time::Span;

pub use saving::{ConditionsReport, SaveAnswer, SaveRequest};

pub use effects::{ClaimAnswer, ClaimRequest, ProbeAnswer, START_WINDOW, Settled, Settlement};

/// Asks for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// The task.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub epoch: u64,
    /// Who asks.
    pub worker: InstanceId,
}

/// The answer to a [`LeaseRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LeaseAnswer {
    /// The job is the worker's, and the lease is durable.
    Granted {
        /// The job.
        job: Box<Job>,
        /// How long without a heartbeat it stays so.
        lease: Span,
    },
    /// The job is no longer wanted; drop the message.
    Refused {
        /// Why.
        reason: String,
    },
}

/// What a worker has to do, as a heartbeat's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Directive {
    /// Go on.
    Continue,
    /// Write a checkpoint as soon as possible, then park.
    Park,
    /// Stop now and report what there is.
    Stop,
    /// The lease is lost: stop, and report nothing.
    Lost,
}

/// Whether a checkpoint is in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Receipt {
    /// Not seen yet.
    Pending,
    /// It is the chain's newest, or was.
    Accepted,
    /// It will never be in the chain.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Asks to use a grant, with what the worker measured right now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedeemRequest {
    /// The task.
    pub task_id: TaskId,
    /// The grant.
    pub grant: GrantId,
    /// The attempt.
    pub epoch: u64,
    /// The target as measured.
    pub target: Digest,
    /// The digest of the changeset that the worker holds.
    pub changeset_hash: Digest,
}

/// The answer to a [`RedeemRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RedeemAnswer {
    /// The grant is journaled as redeemed for exactly this.
    Redeemed,
    /// The grant is void; touch nothing.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Says that the target is not what the task's base says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftReport {
    /// The task.
    pub task_id: TaskId,
    /// The base that it was compared with.
    pub base: Digest,
    /// The target as measured.
    pub target: Digest,
    /// Paths that differ, the first hundred.
    pub paths: Vec<String>,
}

/// A task whose target has to be watched, because a verdict on it is awaited or in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    /// The task.
    pub task_id: TaskId,
    /// The target.
    pub root_id: RootId,
    /// The blob of the [`crate::records::TaskSpec`] in force.
    pub spec: Digest,
    /// What the target should be.
    pub base: Digest,
}

/// Why the orchestrator could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It can't be reached, or can't store anything now; ask again.
    #[error("the orchestrator does not answer now: {0}")]
    Unavailable(String),
    /// The request can never be answered.
    #[error("the orchestrator refuses: {0}")]
    Refused(String),
}

/// The orchestrator, as workers and reviewers see it.
#[async_trait]
pub trait Coordinator: Send + Sync {
    /// Takes a job. When it is granted, the lease is durable: acknowledge the message then.
    async fn take_lease(&self, request: LeaseRequest) -> Result<LeaseAnswer, Error>;

    /// Renews a lease.
    async fn heartbeat(&self, task: &TaskId, epoch: u64, worker: &InstanceId) -> Result<Directive, Error>;

    /// Waits up to a few seconds until it is known what became of a checkpoint.
    async fn receipt(&self, task: &TaskId, checkpoint: &CheckpointId, hash: Digest) -> Result<Receipt, Error>;

    /// Uses a grant.
    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemAnswer, Error>;

    /// Asks to start an effect. What it answers is journaled before.
    async fn claim_effect(&self, request: ClaimRequest) -> Result<ClaimAnswer, Error>;

    /// Says what came of an effect. Taken also from attempts that were replaced: what happened, happened.
    async fn settle_effect(&self, settlement: Settlement) -> Result<(), Error>;

    /// Takes a save point: when it answers [`SaveAnswer::Saved`], the next attempt goes on from there.
    async fn save_point(&self, request: SaveRequest) -> Result<SaveAnswer, Error>;

    /// Says what came of the conditions of an attempt. When this returns, it is journaled.
    async fn conditions(&self, report: ConditionsReport) -> Result<(), Error>;

    /// Reports drift.
    async fn report_drift(&self, report: DriftReport) -> Result<(), Error>;

    /// The tasks whose targets this worker's host has to watch.
    async fn watched(&self) -> Result<Vec<Watched>, Error>;

    /// What a verdict on this task must be bound to now; `None` where none is asked for.
    async fn current_bindings(&self, task: &TaskId) -> Result<Option<Bindings>, Error>;
}
