//! An orchestrator reduced to the one thing that reviewers ask.

use std::sync::Mutex;

use async_trait::async_trait;
use checkrein_shared::coordinator::{
    ClaimAnswer, ClaimRequest, ConditionsReport, Coordinator, Directive, DriftReport, Error, LeaseAnswer, LeaseRequest,
    Receipt, RedeemAnswer, RedeemRequest, SaveAnswer, SaveRequest, Settlement, Watched,
};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{CheckpointId, InstanceId, TaskId};
use checkrein_shared::records::Bindings;

#[derive(Default)]
pub(crate) struct Current {
    bindings: Mutex<Option<Bindings>>,
    /// How often it does not answer before it does.
    pub(crate) unavailable: Mutex<u32>,
}

impl Current {
    pub(crate) fn set(&self, bindings: Option<Bindings>) {
        *self.bindings.lock().unwrap() = bindings;
    }
}

fn not_asked<T>() -> Result<T, Error> {
    Err(Error::Refused("reviewers do not ask for this".into()))
}

#[async_trait]
impl Coordinator for Current {
    async fn take_lease(&self, _: LeaseRequest) -> Result<LeaseAnswer, Error> {
        not_asked()
    }

    async fn heartbeat(&self, _: &TaskId, _: u64, _: &InstanceId) -> Result<Directive, Error> {
        not_asked()
    }

    async fn receipt(&self, _: &TaskId, _: &CheckpointId, _: Digest) -> Result<Receipt, Error> {
        not_asked()
    }

    async fn redeem(&self, _: RedeemRequest) -> Result<RedeemAnswer, Error> {
        not_asked()
    }

    async fn claim_effect(&self, _: ClaimRequest) -> Result<ClaimAnswer, Error> {
        not_asked()
    }

    async fn settle_effect(&self, _: Settlement) -> Result<(), Error> {
        not_asked()
    }

    async fn save_point(&self, _: SaveRequest) -> Result<SaveAnswer, Error> {
        Err(Error::Refused("reviewers save nothing".into()))
    }

    async fn conditions(&self, _: ConditionsReport) -> Result<(), Error> {
        Err(Error::Refused("reviewers run no attempts".into()))
    }

    async fn report_drift(&self, _: DriftReport) -> Result<(), Error> {
        not_asked()
    }

    async fn watched(&self) -> Result<Vec<Watched>, Error> {
        not_asked()
    }

    async fn current_bindings(&self, _: &TaskId) -> Result<Option<Bindings>, Error> {
        let mut unavailable = self.unavailable.lock().unwrap();
        if *unavailable > 0 {
            *unavailable -= 1;
            return Err(Error::Unavailable("restarting".into()));
        }
        Ok(self.bindings.lock().unwrap().clone())
    }
}
