//! Measures targets, each by the ignore rules that its base was measured by.
//!
//! Which rules belong to a base is known from the task's evidence index; this
//! worker also remembers it in its cache folder, for the drift watcher, which
//! has no index at hand. It compares nothing and reports nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::RootId;
use checkrein_shared::records::{EvidenceKind, EvidenceRef};
use checkrein_shared::tree::{Manifest, RelPath};

use crate::config::Services;
use crate::propose::{Stored, named};
use crate::workspace::snapshot::{self, Survey, snapshot};
use crate::workspace::{Rules, StatCache, rules};

/// Why a target could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The rules are not to be had.
    #[error("the ignore rules can't be read")]
    Rules(#[from] rules::Error),
    /// The files could not be read or stored.
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
}

/// The ref under which the rules of a base stand in the evidence index.
pub(crate) fn rules_ref(base: Digest) -> EvidenceRef {
    named(EvidenceKind::Report, &format!("rules-{}", base.short()))
}

/// The rules of a target as it stands now.
pub(crate) async fn rules_now(target: &Path, carry: &[RelPath]) -> Result<Arc<Rules>, Error> {
    Ok(Arc::new(Rules::read(target).await?.carrying(carry)))
}

/// Measures a target and stores what `known` does not hold.
pub(crate) async fn and_store(
    services: &Services,
    root: &RootId,
    target: &Path,
    rules: &Arc<Rules>,
    known: Option<&Manifest>,
) -> Result<Stored, Error> {
    let survey = Survey::new(Arc::clone(rules)).storing(&*services.blobs, known);
    measured(services, root, target, &survey).await
}

/// Measures a target and stores nothing.
pub(crate) async fn only(
    services: &Services,
    root: &RootId,
    target: &Path,
    rules: &Arc<Rules>,
) -> Result<Stored, Error> {
    measured(services, root, target, &Survey::new(Arc::clone(rules))).await
}

async fn measured(services: &Services, root: &RootId, target: &Path, survey: &Survey<'_>) -> Result<Stored, Error> {
    let mut cache = StatCache::open(&services.cache.stats().join(root.as_str()));
    let found = snapshot(target, &mut cache, survey).await?;
    if let Err(error) = cache.save() {
        tracing::warn!(root.id = %root, %error, "a stat cache could not be kept; the next measurement takes longer");
    }
    Ok(Stored { digest: found.root, manifest: found.manifest })
}

fn note(services: &Services, base: Digest) -> PathBuf {
    services.cache.stats().join(format!("rules-{}", base.to_hex()))
}

/// Remembers which rules a base was measured by. Forgetting it costs accuracy of the watcher, nothing else.
pub(crate) fn remember(services: &Services, base: Digest, rules: Digest) {
    if let Err(error) = std::fs::write(note(services, base), rules.to_string()) {
        tracing::warn!(%base, %error, "the rules of a base could not be remembered");
    }
}

/// The rules that a base was measured by, where this worker remembers them; else those of the target now.
pub(crate) async fn rules_of(services: &Services, base: Digest, target: &Path) -> Result<Arc<Rules>, Error> {
    let noted = std::fs::read_to_string(note(services, base)).ok().and_then(|text| text.parse::<Digest>().ok());
    if let Some(digest) = noted
        && let Ok(rules) = Rules::load(&*services.blobs, digest).await
    {
        return Ok(Arc::new(rules));
    }
    rules_now(target, &[]).await
}
