//! Sixth stage: fetches what has to be read, and puts together what the checks look at.
//!
//! What can't be read is not an error here: it stays out of the coverage, and so
//! keeps the review from approving.

use std::collections::BTreeSet;

use checkrein_shared::digest::Digest;
use checkrein_shared::records::ReviewRequest;
use checkrein_shared::tree::{Changeset, Manifest, RelPath, node};

use super::index::Inspected;
use super::load::Loaded;
use super::reading::{CHANGESET_BYTES_MAX, Reading};
use super::risks::Risks;
use crate::error::Stop;
use crate::ledger::Ledger;
use crate::subject::Subject;

/// What was fetched, and what had to be.
pub(super) struct Fetched {
    pub(super) subject: Subject,
    pub(super) required: BTreeSet<Digest>,
    pub(super) missing: Vec<String>,
}

/// Fetches both trees, the changeset, every changed file, the test runs, and the kinds that the policy names.
pub(super) async fn fetch(
    ledger: &Ledger<'_>,
    request: &ReviewRequest,
    loaded: Loaded,
    risks: Risks,
    index: Inspected,
) -> Result<Fetched, Stop> {
    let Loaded { checkpoint, accepted, settings } = loaded;
    let Risks { spec, open } = risks;
    let base = load_tree(ledger, checkpoint.workspace.base, "the base").await?;
    let tree = load_tree(ledger, checkpoint.workspace.tree, "the tree").await?;
    let accepted_tree = match &accepted {
        Some(accepted) => Some(load_tree(ledger, accepted.workspace.tree, "the accepted tree").await?),
        None => None,
    };
    let changeset = Changeset::between(&base, &tree);

    let own = &checkpoint.workspace;
    let records = [request.checkpoint.record, request.policy, request.spec, request.open_findings, own.base, own.tree];
    let mut reading = Reading::new(ledger, records.into_iter().chain(index.indexes), index.missing);
    let recorded = reading.read(checkpoint.changesets.proposed.hash, CHANGESET_BYTES_MAX, "the changeset").await?;
    let deltas = reading.deltas(&changeset).await?;
    let tests = reading.tests(&index.evidence).await?;
    reading.must_read(&settings.must_read, &index.evidence, &index.fresh, !changeset.is_empty()).await?;
    let applied = reading.applied(&checkpoint).await?;
    let plan = reading.plan(&checkpoint, &spec).await?;
    let (required, missing) = reading.finish();

    let accepted_paths = accepted_tree.as_ref().map(|old| unchanged(&changeset, old, &tree)).unwrap_or_default();
    let subject = Subject {
        recorded: recorded.map(Digest::of),
        evidence: index.evidence,
        runs: Vec::new(),
        checkpoint,
        accepted_tree,
        spec,
        settings,
        open,
        tests,
        base,
        tree,
        changeset,
        applied,
        accepted_paths,
        deltas,
        plan,
    };
    Ok(Fetched { subject, required, missing })
}

/// Loads a tree. The verdict lists its root and not each of its directories.
async fn load_tree(ledger: &Ledger<'_>, root: Digest, what: &str) -> Result<Manifest, Stop> {
    let loaded = node::load_tree(ledger.unlisted(), root).await.map_err(|error| match error {
        node::Error::Blob { source, .. } => Stop::of_blob(what, source),
        other => Stop::unclear(format!("{what} can't be read: {other}")),
    })?;
    ledger.note(root);
    Ok(loaded)
}

/// Changed paths that stand now as they were accepted.
fn unchanged(changeset: &Changeset, accepted: &Manifest, tree: &Manifest) -> BTreeSet<RelPath> {
    let same = |path: &RelPath| match (accepted.get(path), tree.get(path)) {
        (Some(old), Some(new)) => old.same(new),
        (None, None) => true,
        _ => false,
    };
    changeset.touched().into_iter().filter(|path| same(path)).cloned().collect()
}
