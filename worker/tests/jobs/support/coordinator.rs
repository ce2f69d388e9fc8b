//! An orchestrator reduced to what workers may rely on: it leases, keeps one chain, gives receipts, and lets a grant be
//! redeemed only for what it is bound to. It records everything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, EmbeddedBus, Queue};
use checkrein_shared::coordinator::{
    ClaimAnswer, ClaimRequest, ConditionsReport, Coordinator, Directive, DriftReport, Error, LeaseAnswer, LeaseRequest,
    Receipt, RedeemAnswer, RedeemRequest, SaveAnswer, SaveRequest, Settlement, Watched,
};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, GrantId, InstanceId, TaskId};
use checkrein_shared::json;
use checkrein_shared::records::{
    Attempt, AttemptOutcome, Bindings, Checkpoint, CheckpointMessage, CheckpointRef, EvidenceIndex, Job, SavePoint,
};
use checkrein_shared::time::Span;
use tokio::sync::Notify;

/// What a grant is bound to.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) base: Digest,
    pub(crate) changeset: Digest,
    pub(crate) redeemed: bool,
    pub(crate) void: bool,
}

/// One checkpoint of the chain.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) completes: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) jobs: BTreeMap<TaskId, Job>,
    /// Tasks whose current job is leased.
    pub(crate) leased: BTreeMap<TaskId, u64>,
    pub(crate) chain: Vec<Link>,
    pub(crate) refused: Vec<String>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) grants: BTreeMap<GrantId, Grant>,
    pub(crate) redeems: Vec<RedeemRequest>,
    pub(crate) claims: Vec<ClaimRequest>,
    /// What claims are answered with, the first first; granted where none is left.
    pub(crate) claim_answers: VecDeque<ClaimAnswer>,
    pub(crate) settlements: Vec<Settlement>,
    pub(crate) deaf_to_claims: u32,
    pub(crate) deaf_to_settlements: u32,
    /// What heartbeats are answered with once something was claimed.
    pub(crate) directive_after_claim: Option<Directive>,
    pub(crate) drift: Vec<DriftReport>,
    pub(crate) saved: Vec<SavePoint>,
    pub(crate) conditions: Vec<ConditionsReport>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) directive: Option<Directive>,
    pub(crate) heartbeats: u32,
    pub(crate) unavailable: u32,
    pub(crate) refuse_checkpoints: bool,
    pub(crate) before_redeem: Option<fn(&std::path::Path)>,
}

pub(crate) struct Judge {
    state: Mutex<State>,
    pub(crate) changed: Notify,
    pub(crate) lease: Span,
    pub(crate) project: std::path::PathBuf,
}

impl Judge {
    pub(crate) fn new(project: std::path::PathBuf) -> Arc<Self> {
        let lease = Span::from_millis(600);
        Arc::new(Self { state: Mutex::default(), changed: Notify::new(), lease, project })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Takes what workers send, as the orchestrator does: checks it, journals it, acknowledges it.
    pub(crate) async fn take_reports(self: Arc<Self>, bus: EmbeddedBus, blobs: Arc<dyn Blobs>) {
        let mut inbox = bus.consume(&Queue::InWorker, 8).await.unwrap();
        while let Some(delivery) = inbox.next().await {
            match delivery.message.kind.as_str() {
                "checkpoint" => {
                    let message = delivery.message.parse("checkpoint message").unwrap();
                    self.checkpoint(&*blobs, message).await;
                }
                "attempt" => {
                    let attempt: Attempt = delivery.message.parse("attempt").unwrap();
                    let mut state = self.state();
                    let settled = matches!(attempt.outcome, AttemptOutcome::Applied { .. });
                    if settled || state.leased.get(&attempt.task_id) == Some(&attempt.epoch) {
                        state.leased.remove(&attempt.task_id);
                        state.attempts.push(attempt);
                    }
                }
                other => panic!("workers send no `{other}`"),
            }
            self.changed.notify_waiters();
            delivery.ack().await.unwrap();
        }
    }

    async fn checkpoint(&self, blobs: &dyn Blobs, message: CheckpointMessage) {
        let bytes = blobs.get(message.record, 1 << 20).await.expect("the record is stored before it is named");
        let checkpoint: Checkpoint = json::parse_as("checkpoint", &bytes).unwrap();
        checkpoint.check_hash().unwrap();
        assert_eq!(json::canonical(&checkpoint).unwrap(), bytes);
        every_blob_is_there(blobs, &checkpoint).await;
        let mut state = self.state();
        let head = state.jobs.get(&message.task_id).and_then(|job| job.head.clone());
        let current = state.leased.get(&message.task_id) == Some(&message.epoch);
        let follows = checkpoint.check_follows(head.as_ref());
        if !current || state.refuse_checkpoints || follows.is_err() {
            state.refused.push(format!("{}: {follows:?}", message.checkpoint_id));
            return;
        }
        let job = state.jobs.get_mut(&message.task_id).unwrap();
        job.head = Some(CheckpointRef {
            id: checkpoint.checkpoint_id.clone(),
            hash: checkpoint.integrity.checkpoint_hash,
            sequence: checkpoint.sequence,
            record: message.record,
        });
        if checkpoint.gate {
            state.leased.remove(&message.task_id);
        }
        let completes = message.completes.map(String::from);
        state.chain.push(Link { checkpoint, completes });
    }
}

/// Whatever a checkpoint names must be stored before it is sent.
async fn every_blob_is_there(blobs: &dyn Blobs, checkpoint: &Checkpoint) {
    let workspace = &checkpoint.workspace;
    for digest in [workspace.base, workspace.tree, checkpoint.changesets.proposed.hash] {
        assert!(blobs.size(digest).await.unwrap().is_some(), "{digest} is missing");
    }
    let bytes = blobs.get(checkpoint.evidence.index, 1 << 24).await.unwrap();
    let index: EvidenceIndex = json::parse_as("evidence index", &bytes).unwrap();
    for (reference, evidence) in &index.entries {
        assert_eq!(blobs.size(evidence.digest).await.unwrap(), Some(evidence.size), "{reference}");
    }
}

#[async_trait]
impl Coordinator for Judge {
    async fn take_lease(&self, request: LeaseRequest) -> Result<LeaseAnswer, Error> {
        let mut state = self.state();
        if state.unavailable > 0 {
            state.unavailable -= 1;
            return Err(Error::Unavailable("starting".into()));
        }
        let wanted = state.jobs.get(&request.task_id).filter(|job| job.epoch == request.epoch).cloned();
        match wanted {
            Some(job) if !state.leased.contains_key(&request.task_id) => {
                state.leased.insert(request.task_id, request.epoch);
                drop(state);
                self.changed.notify_waiters();
                Ok(LeaseAnswer::Granted { job: Box::new(job), lease: self.lease })
            }
            _ => Ok(LeaseAnswer::Refused { reason: "it is not wanted".into() }),
        }
    }

    async fn heartbeat(&self, task: &TaskId, epoch: u64, _: &InstanceId) -> Result<Directive, Error> {
        let mut state = self.state();
        state.heartbeats += 1;
        if state.leased.get(task) != Some(&epoch) {
            return Ok(Directive::Lost);
        }
        let claimed = state.directive_after_claim.filter(|_| !state.claims.is_empty());
        Ok(claimed.or(state.directive).unwrap_or(Directive::Continue))
    }

    async fn receipt(&self, task: &TaskId, id: &CheckpointId, hash: Digest) -> Result<Receipt, Error> {
        for _ in 0..100 {
            let changed = self.changed.notified();
            {
                let state = self.state();
                let mut of_task = state.chain.iter().filter(|link| &link.checkpoint.task_id == task);
                if of_task.any(|link| link.checkpoint.integrity.checkpoint_hash == hash) {
                    return Ok(Receipt::Accepted);
                }
                if let Some(reason) = state.refused.iter().find(|text| text.starts_with(id.as_str())) {
                    return Ok(Receipt::Refused { reason: reason.clone() });
                }
            }
            let _ = tokio::time::timeout(std::time::Duration::from_millis(50), changed).await;
        }
        Ok(Receipt::Pending)
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemAnswer, Error> {
        let mut state = self.state();
        state.redeems.push(request.clone());
        let live = state.leased.get(&request.task_id) == Some(&request.epoch);
        let Some(grant) = state.grants.get_mut(&request.grant).filter(|_| live) else {
            return Ok(RedeemAnswer::Refused { reason: "no such grant".into() });
        };
        let refused = |why: &str| Ok(RedeemAnswer::Refused { reason: why.into() });
        if grant.void || grant.changeset != request.changeset_hash {
            return refused("it is void");
        }
        if !grant.redeemed && grant.base != request.target {
            grant.void = true;
            return refused("the target changed");
        }
        grant.redeemed = true;
        if let Some(act) = state.before_redeem.take() {
            // A colleague saves a file in the very moment between the permission and its use.
            act(&self.project);
        }
        Ok(RedeemAnswer::Redeemed)
    }

    async fn save_point(&self, request: SaveRequest) -> Result<SaveAnswer, Error> {
        let mut state = self.state();
        if state.leased.get(&request.task_id) != Some(&request.save_point.epoch) {
            return Ok(SaveAnswer::Refused { reason: "the lease is lost".into() });
        }
        state.saved.push(request.save_point);
        drop(state);
        self.changed.notify_waiters();
        Ok(SaveAnswer::Saved)
    }

    async fn conditions(&self, report: ConditionsReport) -> Result<(), Error> {
        self.state().conditions.push(report);
        Ok(())
    }

    async fn claim_effect(&self, request: ClaimRequest) -> Result<ClaimAnswer, Error> {
        let mut state = self.state();
        if state.deaf_to_claims > 0 {
            state.deaf_to_claims -= 1;
            return Err(Error::Unavailable("restarting".into()));
        }
        let key = request.call.key(&request.task_id);
        let granted = ClaimAnswer::Granted { key, time_limit: request.time_limit };
        state.claims.push(request);
        Ok(state.claim_answers.pop_front().unwrap_or(granted))
    }

    async fn settle_effect(&self, settlement: Settlement) -> Result<(), Error> {
        let mut state = self.state();
        if state.deaf_to_settlements > 0 {
            state.deaf_to_settlements -= 1;
            return Err(Error::Unavailable("restarting".into()));
        }
        state.settlements.push(settlement);
        Ok(())
    }

    async fn report_drift(&self, report: DriftReport) -> Result<(), Error> {
        self.state().drift.push(report);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn watched(&self) -> Result<Vec<Watched>, Error> {
        Ok(self.state().watched.clone())
    }

    async fn current_bindings(&self, _: &TaskId) -> Result<Option<Bindings>, Error> {
        Ok(None)
    }
}
