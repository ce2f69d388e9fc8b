//! Puts a checkpoint together and into the chain: changeset, readable
//! difference, index and record, each stored before whatever names it.
//!
//! It decides neither when a checkpoint is due (see [`crate::trigger`]) nor
//! what it claims.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::records::{ChangesetRef, CheckpointMessage, Claim, EvidenceKind, EvidenceRef, IssueRef};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, Manifest, RelPath, diff};

use crate::checkpoint::{self, Draft};
use crate::desk::{Desk, JobError};
use crate::recorder::Recorder;
use crate::submit::{self, Sent};
use crate::trigger::Occasion;

/// A tree that is stored, with its name.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) digest: Digest,
    pub(crate) manifest: Manifest,
}

/// The difference of two trees, as a record and as text.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) changeset: Changeset,
    pub(crate) text: diff::Rendered,
}

impl Difference {
    /// What changed from `base` to `tree`.
    pub(crate) async fn between(desk: &Desk, base: &Stored, tree: &Stored) -> Self {
        let changeset = Changeset::between(&base.manifest, &tree.manifest);
        let text = diff::render(&*desk.services.blobs, &changeset, &diff::Limits::default()).await;
        Self { changeset, text }
    }

    /// Stores both as evidence. Returns the changeset's digest.
    pub(crate) async fn store(&self, recorder: &mut Recorder, name: &str, now: Timestamp) -> Result<Digest, JobError> {
        let reference = named(EvidenceKind::Changeset, name);
        let hash = recorder.add_record(reference, "application/json", &self.changeset, now).await?;
        recorder.add(named(EvidenceKind::Diff, name), "text/x-diff", self.text.text.as_bytes(), 0, now).await?;
        Ok(hash)
    }
}

/// What a checkpoint is about.
#[derive(Debug)]
pub(crate) struct Proposal<'a> {
    pub(crate) occasion: Occasion,
    pub(crate) base: &'a Stored,
    pub(crate) tree: &'a Stored,
    pub(crate) difference: &'a Difference,
    pub(crate) completes: Option<&'a StepId>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) issues: Vec<IssueRef>,
    pub(crate) errors: Vec<IssueRef>,
    pub(crate) git_commit: Option<String>,
    pub(crate) confinement: String,
}

/// Stores everything, sends the checkpoint, and waits until it is known what became of it.
pub(crate) async fn checkpoint(desk: &Desk, recorder: &mut Recorder, proposal: Proposal<'_>) -> Result<Sent, JobError> {
    let now = Timestamp::now();
    let job = &desk.job;
    let id = job.task_id.changeset(checkpoint::next_sequence(job));
    let hash = proposal.difference.store(recorder, id.as_str(), now).await?;
    let index = recorder.index().await?;
    let record = checkpoint::author(Draft {
        job,
        spec: &desk.spec,
        constraints: desk.policy.constraint_refs(&desk.spec),
        occasion: proposal.occasion,
        now,
        instance: &desk.services.config.instance,
        base: proposal.base.digest,
        tree: proposal.tree.digest,
        git_commit: proposal.git_commit,
        confinement: proposal.confinement,
        proposed: ChangesetRef { id, hash },
        completes: proposal.completes,
        run_state: desk.run_state_of(proposal.base.digest, proposal.tree.digest),
        index,
        fresh: &recorder.fresh(),
        claims: proposal.claims,
        issues: proposal.issues,
        errors: proposal.errors,
    })?;
    let bytes = json::canonical(&record).expect("a sealed record has a canonical form");
    let blob = desk.services.blobs.put(&bytes).await.map_err(|e| JobError::Blob("the checkpoint", e))?;
    let message = CheckpointMessage {
        task_id: job.task_id.clone(),
        checkpoint_id: record.checkpoint_id.clone(),
        epoch: job.epoch,
        record: blob,
        completes: proposal.completes.cloned(),
    };
    tracing::info!(checkpoint.id = %record.checkpoint_id, trigger = record.trigger.as_str(), gate = record.gate,
        "a checkpoint is submitted");
    Ok(submit::checkpoint(&desk.services, &message, record.integrity.checkpoint_hash, &desk.orders).await?)
}

/// A ref whose name is made of ids.
pub(crate) fn named(kind: EvidenceKind, name: &str) -> EvidenceRef {
    EvidenceRef::new(kind, name).expect("ids are short, not empty and hold no control characters")
}

/// Whether a ref names a file of the tree.
pub(crate) fn names_file(reference: &EvidenceRef) -> bool {
    reference.kind() == EvidenceKind::File
}

/// The blob and size of the file that a ref names, where the tree has it and its bytes are stored.
pub(crate) fn file_of(reference: &EvidenceRef, tree: &Manifest) -> Option<(Digest, u64)> {
    let path = names_file(reference).then(|| reference.name().parse::<RelPath>().ok()).flatten()?;
    let entry = tree.get(&path)?;
    Some((entry.blob()?, entry.size()))
}
