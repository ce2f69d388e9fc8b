//! Dropping the displaced files once nobody can need them any more.

use std::path::PathBuf;
use std::sync::Arc;

use checkrein_shared::tree::Changeset;

use super::plan;
use super::run::on_thread;
use super::stage::Stage;
use super::standing::Standing;
use super::swap::recover_hold;
use super::{Error, RootLock};

/// What remains after finishing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Files that hold somebody's edit and were therefore not dropped.
    pub kept: Vec<PathBuf>,
}

/// Drops what applying `changeset` displaced. Call it when the task ends; twice does no harm.
///
/// A displaced file that is no longer what the changeset replaced was written to
/// by a program that had it open: it is kept and named.
///
/// # Errors
///
/// [`Error::Io`].
pub async fn finish(lock: &RootLock, changeset: &Changeset) -> Result<Finished, Error> {
    let (root, digest, ops) = (Arc::clone(lock.root()), changeset.digest(), plan::ops(changeset));
    on_thread(move || {
        let at = |path: &PathBuf| {
            let path = path.clone();
            |source| Error::Io { path, source }
        };
        let target = root.path().to_owned();
        let Some(stage) = Stage::existing(&root, digest).map_err(at(&target))? else {
            return Ok(Finished::default());
        };
        for op in &ops {
            recover_hold(&stage, op.number).map_err(at(&stage.path))?;
            let slot = stage.slot(op.number).map_err(at(&stage.path))?;
            let own = slot.is(op.old.as_ref()) || slot.is(op.new.as_ref());
            if own && slot != Standing::Nothing {
                stage.remove(&op.number.to_string()).map_err(at(&stage.path))?;
            }
            stage.remove(&format!("{}.new", op.number)).map_err(at(&stage.path))?;
        }
        for name in ["plan", "plan.new"] {
            stage.remove(name).map_err(at(&stage.path))?;
        }
        let mut kept: Vec<PathBuf> =
            stage.names().map_err(at(&stage.path))?.into_iter().map(|name| stage.path.join(name)).collect();
        kept.sort();
        stage.dissolve(&root).map_err(at(&stage.path))?;
        Ok(Finished { kept })
    })
    .await
}
