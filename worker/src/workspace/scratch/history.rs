//! A git repository for the scratch: the target's branches and tags, and nothing else of it.
//!
//! Objects are copied, not linked, as the agent may write to its own. There is no
//! remote to push to; configuration, hooks, stashes and worktrees stay behind.

use std::path::Path;

use super::Error;
use crate::workspace::git;

/// Gives `scratch`, which holds a tree already, a `.git` with the history of `target`.
pub(super) async fn copy(target: &Path, scratch: &Path) -> Result<(), Error> {
    let repository = scratch.join(".git");
    let clone = ["clone", "--quiet", "--bare", "--local", "--no-hardlinks", "--template="].map(AsRef::as_ref);
    git::run(scratch, clone.into_iter().chain([target.as_os_str(), repository.as_os_str()])).await?;
    git::run(scratch, ["config", "core.bare", "false"]).await?;
    git::run(scratch, ["config", "--remove-section", "remote.origin"]).await?;
    // A repository without a commit has no tree to fill the index from.
    if git::run(scratch, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.is_ok() {
        git::run(scratch, ["read-tree", "HEAD"]).await?;
    }
    Ok(())
}
