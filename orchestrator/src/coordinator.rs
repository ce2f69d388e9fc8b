//! The orchestrator as workers and reviewers see it, in one process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{
    ClaimAnswer, ClaimRequest, ConditionsReport, Coordinator, Directive, DriftReport, Error, LeaseAnswer, LeaseRequest,
    Receipt, RedeemAnswer, RedeemRequest, SaveAnswer, SaveRequest, Settlement, Watched,
};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, InstanceId, TaskId};
use checkrein_shared::records::{Bindings, Job, JobKind};
use checkrein_shared::time::Span;

use crate::engine::{self, Engine, Handled};
use crate::leases::{LEASE, Leases};
use crate::lifecycle::{EventKind, GrantStatus, Reason, State, Task, directive, open_issues};
use crate::saves;

/// How long a receipt is waited for.
const RECEIPT_WAIT: Duration = Duration::from_secs(5);

/// Answers workers and reviewers from the engine.
pub(crate) struct LocalCoordinator {
    engine: Arc<Engine>,
    leases: Arc<Leases>,
    refusals: Arc<Refusals>,
}

impl LocalCoordinator {
    pub(crate) fn new(engine: Arc<Engine>, leases: Arc<Leases>, refusals: Arc<Refusals>) -> Self {
        Self { engine, leases, refusals }
    }
}

/// How many refused checkpoints are remembered.
const REFUSALS_MAX: usize = 1_024;

/// Checkpoints that were refused since the start, so that their authors learn why. What is forgotten here
/// is found out from the chain.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    inner: Mutex<VecDeque<(CheckpointId, Digest, String)>>,
}

impl Refusals {
    pub(crate) fn add(&self, checkpoint: CheckpointId, hash: Digest, reason: String) {
        let mut refusals = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() == REFUSALS_MAX {
            refusals.pop_front();
        }
        refusals.push_back((checkpoint, hash, reason));
    }

    fn reason(&self, checkpoint: &CheckpointId, hash: Digest) -> Option<String> {
        let refusals = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.iter().find(|(c, h, _)| c == checkpoint && *h == hash).map(|(_, _, reason)| reason.clone())
    }
}

/// A refusal is final; everything else may pass.
pub(crate) fn failed(error: engine::Error) -> Error {
    match error {
        engine::Error::NoTask(_) | engine::Error::Illegal(_) => Error::Refused(error.to_string()),
        other => Error::Unavailable(with_causes(&other)),
    }
}

#[async_trait]
impl Coordinator for LocalCoordinator {
    async fn take_lease(&self, request: LeaseRequest) -> Result<LeaseAnswer, Error> {
        let LeaseRequest { task_id, job_id, epoch, worker } = request;
        let asking = worker.clone();
        let event = EventKind::LeaseTaken { job_id, epoch, worker };
        match self.engine.handle(&task_id, event, None).await {
            Ok(Handled::Advanced(task, version)) => {
                self.leases.arm(&task_id, epoch);
                self.granted(&task, version).await
            }
            Ok(Handled::Ignored(reason, _)) => self.held_already(&task_id, epoch, &asking, &reason).await,
            Err(engine::Error::NoTask(id)) => Ok(LeaseAnswer::Refused { reason: format!("there is no task `{id}`") }),
            Err(error) => Err(failed(error)),
        }
    }

    async fn heartbeat(&self, task: &TaskId, epoch: u64, worker: &InstanceId) -> Result<Directive, Error> {
        let (state, _) = self.engine.task(task).await.map_err(failed)?;
        let mine = match &state.state {
            State::Running { worker: holder, .. } => holder == worker,
            _ => true,
        };
        let directive = if mine { directive(&state, epoch) } else { Directive::Lost };
        if directive == Directive::Lost {
            self.leases.drop_lease(task, epoch);
        } else {
            self.leases.arm(task, epoch);
        }
        Ok(directive)
    }

    async fn receipt(&self, task: &TaskId, checkpoint: &CheckpointId, hash: Digest) -> Result<Receipt, Error> {
        let mut changes = self.engine.store().changes();
        let deadline = tokio::time::Instant::now() + RECEIPT_WAIT;
        loop {
            if let Some(receipt) = self.receipt_now(task, checkpoint, hash).await? {
                return Ok(receipt);
            }
            // A refusal moves no head, so look again now and then.
            let wait = deadline.min(tokio::time::Instant::now() + Duration::from_millis(200));
            let _ = tokio::time::timeout_at(wait, changes.changed()).await;
            if tokio::time::Instant::now() >= deadline {
                return Ok(Receipt::Pending);
            }
        }
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemAnswer, Error> {
        let (task_id, grant) = (request.task_id.clone(), request.grant.clone());
        let handled = match self.engine.handle(&task_id, EventKind::RedeemRequested { request }, None).await {
            Ok(handled) => handled,
            Err(engine::Error::Illegal(illegal)) => {
                return Ok(RedeemAnswer::Refused { reason: illegal.hint });
            }
            Err(error) => return Err(failed(error)),
        };
        let status = handled.task().grants.iter().find(|g| g.id == grant).map(|g| g.status.clone());
        Ok(match status {
            Some(GrantStatus::Redeemed {}) => RedeemAnswer::Redeemed,
            Some(GrantStatus::Void { reason }) => RedeemAnswer::Refused { reason },
            _ => RedeemAnswer::Refused { reason: "the grant was used or is not known".into() },
        })
    }

    async fn claim_effect(&self, request: ClaimRequest) -> Result<ClaimAnswer, Error> {
        crate::claims::claim(&self.engine, request).await
    }

    async fn settle_effect(&self, settlement: Settlement) -> Result<(), Error> {
        crate::claims::settle(&self.engine, settlement).await
    }

    async fn save_point(&self, request: SaveRequest) -> Result<SaveAnswer, Error> {
        saves::take(&self.engine, request).await
    }

    async fn conditions(&self, report: ConditionsReport) -> Result<(), Error> {
        saves::conditions(&self.engine, report).await
    }

    async fn report_drift(&self, report: DriftReport) -> Result<(), Error> {
        let DriftReport { task_id, base, target, mut paths } = report;
        paths.truncate(100);
        self.engine
            .handle(&task_id, EventKind::TargetDrifted { base, target, paths }, None)
            .await
            .map(|_| ())
            .map_err(failed)
    }

    async fn watched(&self) -> Result<Vec<Watched>, Error> {
        let mut watched = Vec::new();
        crate::listing::each_task(&self.engine, |task, _| {
            if let Some(base) = task.base.filter(|_| wants_watching(&task)) {
                watched.push(Watched {
                    task_id: task.id.clone(),
                    root_id: task.root_id.clone(),
                    spec: task.spec.record,
                    base,
                });
            }
        })
        .await
        .map_err(failed)?;
        Ok(watched)
    }

    async fn current_bindings(&self, task: &TaskId) -> Result<Option<Bindings>, Error> {
        let (state, _) = self.engine.task(task).await.map_err(failed)?;
        Ok(match (&state.state, &state.head) {
            (State::Reviewing { .. } | State::Paused { .. }, _) => state.live_bindings(),
            // While work goes on, reviews that only watch are about the newest checkpoint.
            (State::Queued { .. } | State::Running { .. }, Some(head)) => {
                let head = self.engine.loader().checkpoint(head.record).await;
                Some(head.map_err(|error| failed(error.into()))?.bindings())
            }
            _ => None,
        })
    }
}

impl LocalCoordinator {
    /// What has become of a checkpoint so far, without waiting.
    pub(crate) async fn receipt_now(
        &self,
        task: &TaskId,
        checkpoint: &CheckpointId,
        hash: Digest,
    ) -> Result<Option<Receipt>, Error> {
        let (state, _) = self.engine.task(task).await.map_err(failed)?;
        self.receipt_of(&state, checkpoint, hash).await.map_err(failed)
    }

    /// A worker that asks again because the answer was lost gets the lease that it has.
    async fn held_already(
        &self,
        id: &TaskId,
        epoch: u64,
        asking: &InstanceId,
        why: &Reason,
    ) -> Result<LeaseAnswer, Error> {
        let (task, version) = self.engine.task(id).await.map_err(failed)?;
        Ok(match &task.state {
            State::Running { worker, .. } if worker == asking && task.epoch == epoch => {
                self.leases.arm(id, epoch);
                self.granted(&task, version).await?
            }
            _ => LeaseAnswer::Refused { reason: format!("{why:?}") },
        })
    }

    /// The job of a task whose lease was taken.
    async fn granted(&self, task: &Task, version: u64) -> Result<LeaseAnswer, Error> {
        let lease = Span::from_millis(u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX));
        let Some(mut job) = job_of(task, version) else {
            return Ok(LeaseAnswer::Refused { reason: "the job is gone".into() });
        };
        if job.resume.is_some() {
            job.later_effects = saves::later_effects(&self.engine, task).await.map_err(failed)?;
        }
        Ok(LeaseAnswer::Granted { job: Box::new(job), lease })
    }

    async fn receipt_of(
        &self,
        task: &Task,
        checkpoint: &CheckpointId,
        hash: Digest,
    ) -> Result<Option<Receipt>, engine::Error> {
        if let Some(reason) = self.refusals.reason(checkpoint, hash) {
            return Ok(Some(Receipt::Refused { reason }));
        }
        if task.head.as_ref().is_some_and(|h| &h.id == checkpoint && h.hash == hash) {
            return Ok(Some(Receipt::Accepted));
        }
        let sequence = checkpoint.as_str().rsplit('-').next().and_then(|number| number.parse::<u64>().ok());
        if task.head.as_ref().is_none_or(|head| sequence.is_none_or(|sequence| head.sequence < sequence)) {
            return Ok(None);
        }
        // The orchestrator may have written a control checkpoint on top of it already.
        let chain = crate::listing::chain(&self.engine, &task.id).await?;
        Ok(chain.into_iter().find(|c| &c.id == checkpoint).map(|c| {
            let reason = format!("another checkpoint is `{checkpoint}` in the chain");
            if c.hash == hash { Receipt::Accepted } else { Receipt::Refused { reason } }
        }))
    }
}

fn wants_watching(task: &Task) -> bool {
    match &task.state {
        State::Reviewing { .. } | State::Waiting { .. } => true,
        State::Queued { job } => !matches!(job, JobKind::Rebase),
        State::Running { job, .. } => matches!(job, JobKind::Step { .. } | JobKind::Evidence { .. }),
        State::Held { .. }
        | State::Paused { .. }
        | State::Blocked { .. }
        | State::Cancelling { .. }
        | State::Done { .. } => false,
    }
}

/// The job that a task's running attempt is about.
fn job_of(task: &Task, version: u64) -> Option<Job> {
    let State::Running { job, .. } = &task.state else { return None };
    Some(Job {
        job_id: task.id.job(task.epoch),
        task_id: task.id.clone(),
        epoch: task.epoch,
        kind: job.clone(),
        root_id: task.root_id.clone(),
        spec: task.spec.record,
        policy: task.policy.digest,
        plan: task.plan.clone(),
        completed: task.completed(),
        head: task.head.clone(),
        state_version: version,
        base: task.base,
        tree: task.tree,
        evidence_index: task.evidence_index,
        round: task.round + 1,
        failures: task.usage.failures,
        required_actions: task.required_actions.clone(),
        applied: task.applied.clone(),
        approvals: task.approvals.clone(),
        open_issues: open_issues(task),
        resume: task.resume_point(job).cloned(),
        later_effects: Vec::new(),
    })
}
