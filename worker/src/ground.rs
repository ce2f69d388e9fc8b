//! What an attempt stands on: the target as measured now, the base, and the
//! tree to go on from.
//!
//! A target that is no longer the base is reported and does not stop the
//! attempt: it goes on at its old base, and a rebase follows. Nothing here
//! changes the target.

use std::path::PathBuf;
use std::sync::Arc;

use checkrein_shared::coordinator::DriftReport;
use checkrein_shared::digest::Digest;
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, node};

use crate::desk::{Desk, JobError};
use crate::propose::Stored;
use crate::recorder::Recorder;
use crate::room::Room;
use crate::workspace::snapshot::{Survey, snapshot};
use crate::workspace::{Cut, Rules, Scratch, StatCache};
use crate::{git_head, kept, measure};

/// The most paths of a drift that are reported, and the longest that they may be together, in bytes.
const DRIFT_PATHS_MAX: (usize, usize) = (100, 32 * 1024);

/// Base, tree and target of an attempt.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) target: PathBuf,
    pub(crate) base: Stored,
    pub(crate) tree: Stored,
    pub(crate) rules: Arc<Rules>,
    pub(crate) git_commit: Option<String>,
}

/// Measures the target and loads base and tree. Before a task's first attempt the target becomes its base.
pub(crate) async fn stand(desk: &Desk, recorder: &mut Recorder, target: PathBuf) -> Result<Ground, JobError> {
    stand_at(desk, recorder, target, (desk.job.base, desk.job.tree)).await
}

/// As [`stand`], on another base and tree than the job's.
pub(crate) async fn stand_at(
    desk: &Desk,
    recorder: &mut Recorder,
    target: PathBuf,
    (base, tree): (Option<Digest>, Option<Digest>),
) -> Result<Ground, JobError> {
    let git_commit = git_head::commit(&target);
    let Some(base) = base else {
        let (base, rules) = new_base(desk, recorder, &target, None).await?;
        return Ok(Ground { target, tree: base.clone(), base, rules, git_commit });
    };
    let rules = base_rules(desk, recorder, base, &target).await?;
    let base = load(desk, base).await?;
    let tree = match tree {
        Some(tree) if tree != base.digest => load(desk, tree).await?,
        _ => base.clone(),
    };
    let ground = Ground { target, base, tree, rules, git_commit };
    ground.report_drift(desk).await?;
    Ok(ground)
}

/// Makes the target as it is now a base: stores it with the rules that it was measured by.
pub(crate) async fn new_base(
    desk: &Desk,
    recorder: &mut Recorder,
    target: &std::path::Path,
    known: Option<&Stored>,
) -> Result<(Stored, Arc<Rules>), JobError> {
    let rules = measure::rules_now(target, desk.policy.carry()).await?;
    let known = known.map(|known| &known.manifest);
    let base = measure::and_store(&desk.services, &desk.job.root_id, target, &rules, known).await?;
    let blobs = &*desk.services.blobs;
    let stored = rules.store(blobs).await.map_err(|e| JobError::Blob("the ignore rules", e))?;
    let size = blobs.size(stored).await.map_err(|e| JobError::Blob("the ignore rules", e))?.unwrap_or(0);
    recorder.add_stored(measure::rules_ref(base.digest), "application/json", stored, size, Timestamp::now());
    measure::remember(&desk.services, base.digest, stored);
    Ok((base, rules))
}

/// The rules that a base was measured by.
pub(crate) async fn base_rules(
    desk: &Desk,
    recorder: &Recorder,
    base: Digest,
    target: &std::path::Path,
) -> Result<Arc<Rules>, JobError> {
    match recorder.get(&measure::rules_ref(base)) {
        Some(evidence) => {
            measure::remember(&desk.services, base, evidence.digest);
            let rules = Rules::load(&*desk.services.blobs, evidence.digest).await.map_err(measure::Error::Rules)?;
            Ok(Arc::new(rules))
        }
        // After an apply the base is the target as it was then, by its own rules.
        None => Ok(measure::rules_now(target, desk.policy.carry()).await?),
    }
}

/// Loads a stored tree.
pub(crate) async fn load(desk: &Desk, digest: Digest) -> Result<Stored, JobError> {
    let manifest = node::load_tree(&*desk.services.blobs, digest).await?;
    Ok(Stored { digest, manifest })
}

impl Ground {
    /// Cuts the scratch in which the step works.
    pub(crate) async fn cut(&self, desk: &Desk, room: &Room) -> Result<Scratch, JobError> {
        let directory = room.scratch();
        let cut = Cut {
            directory: &directory,
            tree: &self.tree.manifest,
            blobs: &*desk.services.blobs,
            target: Some(&self.target),
            rules: &self.rules,
            carry: desk.policy.carry(),
        };
        let scratch = Scratch::create(&cut).await?;
        let (cache, task) = (Arc::clone(&desk.services.cache), desk.job.task_id.clone());
        let (absent, to) = (scratch.absent().clone(), directory.clone());
        on_thread(move || kept::fill(&cache, &task, &absent, &to)).await;
        for path in scratch.missing_carried() {
            tracing::info!(task.id = %desk.job.task_id, %path, "a carried path does not exist in the target");
        }
        Ok(scratch)
    }

    /// Measures the scratch after a command, and stores what is new in it.
    pub(crate) async fn snapshot(&self, desk: &Desk, scratch: &Scratch) -> Result<Stored, JobError> {
        let mut survey = Survey::new(Arc::clone(&self.rules));
        survey.absent = scratch.absent().clone();
        let survey = survey.storing(&*desk.services.blobs, Some(&self.tree.manifest));
        // Not from a cache: the agent had every means to set times back.
        let found = snapshot(scratch.directory(), &mut StatCache::in_memory(), &survey).await?;
        for skipped in &found.skipped {
            tracing::warn!(task.id = %desk.job.task_id, path = %skipped.path.display(), reason = skipped.reason,
                "something in the scratch is not part of its tree");
        }
        let changeset = Changeset::between(&self.base.manifest, &found.manifest);
        let (cache, task) = (Arc::clone(&desk.services.cache), desk.job.task_id.clone());
        let from = scratch.directory().to_owned();
        let kept = on_thread(move || kept::keep(&cache, &task, &changeset, &from)).await;
        kept.map_err(|e| JobError::Io("keep contents that are not stored", e))?;
        Ok(Stored { digest: found.root, manifest: found.manifest })
    }

    /// Measures the target again, and reports it where it is not the base.
    pub(crate) async fn report_drift(&self, desk: &Desk) -> Result<(), JobError> {
        let now = measure::only(&desk.services, &desk.job.root_id, &self.target, &self.rules).await?;
        if now.digest == self.base.digest {
            return Ok(());
        }
        let report = DriftReport {
            task_id: desk.job.task_id.clone(),
            base: self.base.digest,
            target: now.digest,
            paths: differing(&self.base, &now),
        };
        tracing::info!(task.id = %desk.job.task_id, base = %report.base, target = %report.target, "the target drifted");
        if let Err(error) = desk.services.coordinator.report_drift(report).await {
            // The next gate and the redeem look again.
            tracing::warn!(task.id = %desk.job.task_id, %error, "drift could not be reported");
        }
        Ok(())
    }
}

/// Runs file work where it does not hold up the asynchronous threads.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("file work neither panics nor is aborted")
}

/// The first paths in which two trees differ.
pub(crate) fn differing(one: &Stored, other: &Stored) -> Vec<String> {
    let changeset = Changeset::between(&one.manifest, &other.manifest);
    bounded(changeset.touched().into_iter().map(ToString::to_string))
}

/// As many paths as fit into a message.
pub(crate) fn bounded(paths: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut bytes = 0;
    let fits = |path: &String| {
        bytes += path.len();
        bytes <= DRIFT_PATHS_MAX.1
    };
    paths.into_iter().take(DRIFT_PATHS_MAX.0).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_paths_fits_into_a_message() {
        let long = "x".repeat(4_000);
        assert_eq!(bounded(std::iter::repeat_n(long, 500)).len(), 8);
        assert_eq!(bounded((0..500).map(|n| n.to_string())).len(), 100);
    }
}
