//! Saves an agent's progress while it runs: the file that it keeps for itself,
//! with the tree that belongs to it.
//!
//! The file is opaque and raw: it is no evidence, and nobody but the next attempt
//! of the same step sees it. A pair is taken only where the file did not change
//! while the tree was measured. What can't be saved now is saved later; an
//! attempt never fails because of it.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::PoisonError;

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{SaveAnswer, SaveRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::records::{RUN_STATE_BYTES_MAX, RunStateRef, SavePoint};

use crate::desk::{Desk, JobError};
use crate::ground::Ground;
use crate::room::Room;
use crate::workspace::Scratch;

/// What is needed to save an attempt's progress.
pub(crate) struct Saver<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) step: &'a StepId,
    pub(crate) room: &'a Room,
    pub(crate) ground: &'a Ground,
    pub(crate) scratch: &'a Scratch,
    /// The evidence index as it was before the command began.
    pub(crate) index: Digest,
}

impl Saver<'_> {
    /// Saves now and then, for as long as it is polled.
    pub(crate) async fn run(&self) {
        loop {
            tokio::time::sleep(self.desk.services.config.save_interval).await;
            if let Err(error) = self.save_running().await {
                tracing::info!(task.id = %self.desk.job.task_id, error = with_causes(&error), "progress is saved later");
            }
        }
    }

    /// Saves what a running agent has left, if it changed and stands still for as long as its tree is measured.
    async fn save_running(&self) -> Result<(), JobError> {
        let Some(before) = self.read()? else { return Ok(()) };
        if self.is_known(Digest::of(&before), None) {
            return Ok(());
        }
        let tree = self.ground.snapshot(self.desk, self.scratch).await?;
        match self.read()? {
            Some(after) if after == before => self.save(before, tree.digest).await,
            _ => Ok(()),
        }
    }

    /// Saves what an agent has left that does not run any more, with the tree that it left.
    pub(crate) async fn save_last(&self, tree: Digest) {
        let saved = match self.read() {
            Ok(Some(bytes)) => self.save(bytes, tree).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(task.id = %self.desk.job.task_id, error = with_causes(&error), "the last progress can't be saved");
        }
    }

    fn is_known(&self, run_state: Digest, tree: Option<Digest>) -> bool {
        let saved = self.desk.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |saved: &SavePoint| saved.run_state.digest == run_state && tree.is_none_or(|t| t == saved.tree);
        saved.as_ref().is_some_and(same)
    }

    /// Blobs first, then the journal.
    async fn save(&self, bytes: Vec<u8>, tree: Digest) -> Result<(), JobError> {
        let job = &self.desk.job;
        if self.is_known(Digest::of(&bytes), Some(tree)) || self.desk.orders.lost() {
            return Ok(());
        }
        let digest = self.desk.services.blobs.put(&bytes).await.map_err(|e| JobError::Blob("the run state", e))?;
        let save_point = SavePoint {
            epoch: job.epoch,
            step: self.step.clone(),
            // What an opaque file says about turns and tokens, nobody here can read.
            run_state: RunStateRef { digest, turns: 0, tokens_used: 0, tokens_total: 0 },
            base: self.ground.base.digest,
            tree,
            evidence_index: Some(self.index),
            // Known where it is journaled.
            began: None,
        };
        let worker = self.desk.services.config.instance.clone();
        let request = SaveRequest { task_id: job.task_id.clone(), worker, save_point: save_point.clone() };
        match self.desk.services.coordinator.save_point(request).await {
            Ok(SaveAnswer::Saved) => {
                *self.desk.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(save_point);
            }
            Ok(SaveAnswer::Refused { reason }) => {
                tracing::info!(task.id = %job.task_id, reason, "a save point is refused");
            }
            Err(error) => tracing::info!(task.id = %job.task_id, %error, "a save point is not taken now"),
        }
        Ok(())
    }

    fn read(&self) -> Result<Option<Vec<u8>>, JobError> {
        read(&self.room.run_state()).map_err(|error| JobError::Io("read the agent's saved progress", error))
    }
}

/// The file's bytes; `None` where there is none. Only a regular file of its own: a link could lead to what the agent
/// itself may not read, and a pipe would block.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() != 1 {
        return Err(io::Error::other("it is not a regular file of its own"));
    }
    let mut bytes = Vec::new();
    file.take(RUN_STATE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > RUN_STATE_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {RUN_STATE_BYTES_MAX} bytes")));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_regular_file_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run-state");
        assert!(read(&path).unwrap().is_none());
        std::fs::write(&path, b"\x00raw\xff").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"\x00raw\xff");
        std::fs::hard_link(&path, dir.path().join("other")).unwrap();
        assert!(read(&path).is_err(), "a second name may stand for somebody else's file");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("other"), &path).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("larger than 1048576 bytes"));
    }
}
