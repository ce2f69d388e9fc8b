//! Which reviews a change of files does not concern, where the policy says
//! `inherit: {base: relevant}`.
//!
//! A review is concerned by the files that its verifiers cover and the files
//! whose content it read. What can't be found out counts as concerned.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::blob::Blobs;
use checkrein_shared::json;
use checkrein_shared::policy::{CompiledPolicy, InheritBase, any_glob};
use checkrein_shared::records::{Checkpoint, Verdict};
use checkrein_shared::signing::Envelope;
use checkrein_shared::tree::{Changeset, Entry, node};

use crate::inputs::RECORD_BYTES_MAX;
use crate::lifecycle::{Task, VerdictState};

/// Names of the reviews whose newest verdict `checkpoint`'s files do not concern.
pub(crate) async fn unaffected(
    blobs: &dyn Blobs,
    task: &Task,
    checkpoint: &Checkpoint,
    policy: &CompiledPolicy,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if policy.policy().inherit.base != InheritBase::Relevant {
        return names;
    }
    let mut newest: BTreeMap<&str, &VerdictState> = BTreeMap::new();
    for verdict in &task.verdicts {
        newest.insert(&verdict.review, verdict);
    }
    for (name, verdict) in newest {
        if is_unaffected(blobs, verdict, checkpoint, policy).await.unwrap_or(false) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// `None` where something can't be read.
async fn is_unaffected(
    blobs: &dyn Blobs,
    old: &VerdictState,
    checkpoint: &Checkpoint,
    policy: &CompiledPolicy,
) -> Option<bool> {
    let before = node::load_tree(blobs, old.bindings.tree).await.ok()?;
    let after = node::load_tree(blobs, checkpoint.workspace.tree).await.ok()?;
    let between = Changeset::between(&before, &after);
    // What the task itself changes is always its reviewers' concern; only what came from the target may not be.
    let mut own = BTreeSet::new();
    for digest in [old.bindings.changeset_hash, checkpoint.changesets.proposed.hash] {
        let bytes = blobs.get(digest, RECORD_BYTES_MAX).await.ok()?;
        own.extend(Changeset::parse(&bytes).ok()?.touched().into_iter().cloned());
    }
    let envelope: Envelope =
        json::parse_as("envelope", &blobs.get(old.envelope?, RECORD_BYTES_MAX).await.ok()?).ok()?;
    let verdict: Verdict = json::parse_as("verdict", &envelope.payload_unverified().ok()?).ok()?;
    let read = |entry: Option<&Entry>| entry.is_some_and(|e| verdict.coverage.fetched.contains(&e.content_digest()));
    let concerned = between.path_changes().into_iter().any(|change| {
        if own.contains(change.path) {
            return true;
        }
        let path = change.path.to_string();
        !any_glob(&policy.policy().inherit.except, &path)
            && (covers(policy, &old.review, &path) || read(change.old) || read(change.new))
    });
    Some(!concerned)
}

/// Whether a verifier that a review runs covers a path.
fn covers(policy: &CompiledPolicy, review: &str, path: &str) -> bool {
    let policy = policy.policy();
    let Some(review) = policy.review(review) else { return true };
    let runs = |name: &String| review.verifiers.is_empty() || review.verifiers.contains(name);
    policy.verifiers.iter().any(|(name, verifier)| runs(name) && any_glob(&verifier.covers, path))
}
