//! All that a job's code has on its desk: the job with its specification and
//! policy, the worker's services, and its orders.
//!
//! Loading it reads blobs and starts nothing.

use std::sync::{Arc, Mutex, PoisonError};

use checkrein_shared::blob;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, IntegrityError, Job, SavePoint, TaskSpec};
use checkrein_shared::redact::Redactor;
use checkrein_shared::tree;

use crate::config::Services;
use crate::orders::Orders;
use crate::policy::JobPolicy;
use crate::recorder::{self, Recorder};
use crate::{index, room, submit};

/// The largest record that is read: a specification, a policy, a checkpoint.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// Why a job can't go on here and now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// The blob store failed.
    #[error("can't read or store {0}")]
    Blob(&'static str, #[source] blob::Error),
    /// A stored record is not what it should be.
    #[error("{0} can't be read")]
    Record(&'static str, #[source] json::Error),
    /// The policy can't be used.
    #[error("the task's policy can't be used")]
    Policy(#[from] crate::policy::Error),
    /// A tree can't be stored or loaded.
    #[error("a tree can't be stored or loaded")]
    Tree(#[from] tree::node::Error),
    /// The evidence index can't be read.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// Evidence can't be kept.
    #[error(transparent)]
    Recorder(#[from] recorder::Error),
    /// A record of ours is broken.
    #[error("the checkpoint can't be written")]
    Integrity(#[from] IntegrityError),
    /// A report breaks a limit of the bus.
    #[error(transparent)]
    Submit(#[from] submit::Error),
    /// The job's folders are not to be had.
    #[error("the job has no folder to work in")]
    Room(#[from] room::Error),
    /// The target is not the one that the task was submitted for.
    #[error(transparent)]
    Unmet(#[from] crate::preconditions::Unmet),
    /// The target can't be measured.
    #[error("the workspace can't be measured")]
    Measure(#[from] crate::measure::Error),
    /// The scratch can't be measured.
    #[error("the scratch can't be measured")]
    Snapshot(#[from] crate::workspace::snapshot::Error),
    /// The scratch can't be cut.
    #[error("the scratch can't be cut")]
    Scratch(#[from] crate::workspace::scratch::Error),
    /// The changeset can't be applied now.
    #[error("the changeset can't be applied now")]
    Apply(#[source] crate::workspace::apply::Error),
    /// The supervisor failed.
    #[error("it is not known what became of the command")]
    Process(#[source] checkrein_shared::process::Error),
    /// The save point is lost, and nothing that could be gone back to holds all work that was done before.
    #[error(
        "the save point can't be restored ({0}), and the newest checkpoint lacks work that was done before it: \
         restore the blob from a backup, or take over"
    )]
    NoWayBack(String),
    /// The file system failed.
    #[error("can't {0}")]
    Io(&'static str, #[source] std::io::Error),
    /// The job asks for something impossible.
    #[error("the job makes no sense: {0}")]
    Nonsense(String),
}

impl JobError {
    /// Whether something that was stored is not there any more, or damaged.
    pub(crate) fn is_lost_blob(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(blob::Error::Missing(_) | blob::Error::Damaged { .. }) = error.downcast_ref() {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Whether it would come again on every worker, so that somebody has to hear of it.
    pub(crate) fn is_lasting(&self) -> bool {
        let gone = |error: &blob::Error| !matches!(error, blob::Error::Io { .. });
        match self {
            Self::Blob(_, error) => gone(error),
            Self::Recorder(recorder::Error::Blob(_, error)) => gone(error),
            Self::Record(..)
            | Self::Policy(_)
            | Self::Tree(_)
            | Self::Index(_)
            | Self::Recorder(recorder::Error::Record(..))
            | Self::Integrity(_)
            | Self::Submit(_)
            | Self::Unmet(_)
            | Self::Measure(_)
            | Self::Snapshot(_)
            | Self::Scratch(_)
            | Self::NoWayBack(_)
            | Self::Nonsense(_) => true,
            Self::Room(_) | Self::Apply(_) | Self::Process(_) | Self::Io(..) => false,
        }
    }
}

/// One job and what it works with.
pub(crate) struct Desk {
    pub(crate) services: Services,
    pub(crate) job: Job,
    pub(crate) spec: TaskSpec,
    pub(crate) policy: JobPolicy,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) orders: Orders,
    /// What this attempt saved last, or goes on from.
    pub(crate) saved: Mutex<Option<SavePoint>>,
}

impl Desk {
    /// Loads specification and policy.
    pub(crate) async fn load(services: &Services, job: &Job, orders: &Orders) -> Result<Self, JobError> {
        let what = "the task's specification";
        let bytes = services.blobs.get(job.spec, RECORD_BYTES_MAX).await.map_err(|e| JobError::Blob(what, e))?;
        let spec: TaskSpec = json::parse_as("task specification", &bytes).map_err(|e| JobError::Record(what, e))?;
        let what = "the task's policy";
        let bytes = services.blobs.get(job.policy, RECORD_BYTES_MAX).await.map_err(|e| JobError::Blob(what, e))?;
        let policy = JobPolicy::load(&bytes)?;
        let mut redactor = policy.redaction()?;
        for (name, value) in spec.agent.iter().flat_map(|agent| services.config.environment.secrets(agent)) {
            redactor = redactor.known(name, &value);
        }
        let redactor = Arc::new(redactor.build());
        for name in redactor.ignored() {
            tracing::warn!(task.id = %job.task_id, name, "a value is too short to be found in what the agent prints");
        }
        let (services, job, orders) = (services.clone(), job.clone(), orders.clone());
        Ok(Self { services, job, spec, policy, redactor, orders, saved: Mutex::default() })
    }

    /// The newest checkpoint of the chain, whoever wrote it.
    pub(crate) async fn head(&self) -> Result<Option<Checkpoint>, JobError> {
        let Some(head) = &self.job.head else { return Ok(None) };
        let what = "the newest checkpoint";
        let bytes =
            self.services.blobs.get(head.record, RECORD_BYTES_MAX).await.map_err(|e| JobError::Blob(what, e))?;
        let checkpoint = json::parse_as("checkpoint", &bytes).map_err(|e| JobError::Record(what, e))?;
        Ok(Some(checkpoint))
    }

    /// The run state that belongs to a tree on a base, where this attempt has one.
    pub(crate) fn run_state_of(&self, base: Digest, tree: Digest) -> Option<Digest> {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.as_ref().filter(|saved| saved.base == base && saved.tree == tree).map(|saved| saved.run_state.digest)
    }

    /// Whether every step of the plan ended well.
    pub(crate) fn plan_is_complete(&self) -> bool {
        self.job.plan.steps.iter().all(|step| self.job.completed.contains(&step.id))
    }

    /// Begins this attempt's evidence after the task's index.
    pub(crate) async fn recorder(&self, step: Option<&StepId>) -> Result<Recorder, JobError> {
        let known = index::read(&*self.services.blobs, self.job.evidence_index).await?;
        let (blobs, redactor) = (Arc::clone(&self.services.blobs), Arc::clone(&self.redactor));
        let before = (self.job.evidence_index, known);
        Ok(Recorder::new(blobs, redactor, self.services.producer(), step.cloned(), before))
    }
}
