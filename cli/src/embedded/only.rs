//! A coordinator that knows one task only.
//!
//! `run` is asked for one task. Others in the same data folder stay as they are,
//! until `up` or a `run` of their own takes them on.

use std::sync::Arc;

use async_trait::async_trait;
use checkrein_shared::coordinator::{
    ClaimAnswer, ClaimRequest, ConditionsReport, Coordinator, Directive, DriftReport, Error, LeaseAnswer, LeaseRequest,
    Receipt, RedeemAnswer, RedeemRequest, SaveAnswer, SaveRequest, Settlement, Watched,
};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, InstanceId, TaskId};
use checkrein_shared::records::Bindings;

/// See the module.
pub(super) struct OnlyTask {
    inner: Arc<dyn Coordinator>,
    task: TaskId,
}

impl OnlyTask {
    pub(super) fn new(inner: Arc<dyn Coordinator>, task: TaskId) -> Self {
        Self { inner, task }
    }
}

#[async_trait]
impl Coordinator for OnlyTask {
    async fn take_lease(&self, request: LeaseRequest) -> Result<LeaseAnswer, Error> {
        if request.task_id == self.task {
            return self.inner.take_lease(request).await;
        }
        // The message is dropped; the job stays queued, and the next start publishes it again.
        Ok(LeaseAnswer::Refused { reason: "this process works on another task".to_owned() })
    }

    async fn heartbeat(&self, task: &TaskId, epoch: u64, worker: &InstanceId) -> Result<Directive, Error> {
        self.inner.heartbeat(task, epoch, worker).await
    }

    async fn receipt(&self, task: &TaskId, checkpoint: &CheckpointId, hash: Digest) -> Result<Receipt, Error> {
        self.inner.receipt(task, checkpoint, hash).await
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemAnswer, Error> {
        self.inner.redeem(request).await
    }

    async fn claim_effect(&self, request: ClaimRequest) -> Result<ClaimAnswer, Error> {
        self.inner.claim_effect(request).await
    }

    async fn settle_effect(&self, settlement: Settlement) -> Result<(), Error> {
        self.inner.settle_effect(settlement).await
    }

    async fn save_point(&self, request: SaveRequest) -> Result<SaveAnswer, Error> {
        self.inner.save_point(request).await
    }

    async fn conditions(&self, report: ConditionsReport) -> Result<(), Error> {
        self.inner.conditions(report).await
    }

    async fn report_drift(&self, report: DriftReport) -> Result<(), Error> {
        self.inner.report_drift(report).await
    }

    async fn watched(&self) -> Result<Vec<Watched>, Error> {
        let mut watched = self.inner.watched().await?;
        watched.retain(|target| target.task_id == self.task);
        Ok(watched)
    }

    async fn current_bindings(&self, task: &TaskId) -> Result<Option<Bindings>, Error> {
        self.inner.current_bindings(task).await
    }
}
