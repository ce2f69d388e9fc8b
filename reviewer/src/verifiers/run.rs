//! A verifier from start to end: the run that counts, the second one after a
//! failure, and the one on what was there before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::process::Supervisor;
use checkrein_shared::records::EvidenceIndex;
use checkrein_shared::tree::{Manifest, node};
use tokio_util::sync::CancellationToken;

use super::cache::{self, Cache};
use super::evidence::Maker;
use super::from_base::{self, Restored};
use super::once::run_once;
use super::{Attempt, Baseline, Isolation, Trouble, VerifierRun};
use crate::redaction::Redaction;
use crate::settings::Verifier;

/// What all verifiers of a reviewer share.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) work_dir: PathBuf,
    pub(crate) supervisor: Supervisor,
    /// Where programs are looked for.
    pub(crate) path: OsString,
    /// Variables that say where tools keep their files; never credentials.
    pub(crate) tools_env: BTreeMap<OsString, OsString>,
    /// What no verifier may read.
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) isolation: Isolation,
    pub(crate) cache: Cache,
}

/// One verifier on one checkpoint.
pub(crate) struct Job<'a> {
    pub(crate) workshop: &'a Workshop,
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) redaction: &'a Redaction,
    pub(crate) maker: &'a Maker,
    pub(crate) verifier: &'a Verifier,
    /// The target, where it is on this host.
    pub(crate) target: Option<&'a Path>,
    pub(crate) confinement_required: bool,
    pub(crate) cancel: &'a CancellationToken,
}

/// The trees that a verifier may run on.
pub(crate) struct Trees<'a> {
    pub(crate) base: &'a Manifest,
    pub(crate) tree: &'a Manifest,
    /// What was there before, and what it is called; `None` where nobody wants to know.
    pub(crate) before: Option<(&'static str, &'a Manifest)>,
    /// How long the review may still take.
    pub(crate) time_left_ms: u64,
}

/// Runs a verifier. A pass counts at once; a failure is run once more.
///
/// # Errors
///
/// [`Trouble`] where the review as a whole can't go on; what concerns this verifier alone is in the result.
pub(crate) async fn run_verifier(job: &Job<'_>, trees: &Trees<'_>) -> Result<VerifierRun, Trouble> {
    let globs = &job.verifier.from_base;
    let restored = from_base::restore(trees.base, trees.tree, globs);
    let measured_by = from_base::digest(trees.base, globs);
    let mut run = VerifierRun {
        name: job.verifier.name.clone(),
        command: job.verifier.argv.clone(),
        attempts: Vec::new(),
        baseline: None,
        restored: restored.restored.clone(),
        problem: None,
        evidence: EvidenceIndex::default(),
    };
    let outcome = attempts(job, trees, &restored, measured_by, &mut run).await;
    match outcome {
        Err(Trouble::Here(why)) => run.problem = Some(why),
        other => other?,
    }
    Ok(run)
}

async fn attempts(
    job: &Job<'_>,
    trees: &Trees<'_>,
    tree: &Restored,
    measured_by: Digest,
    run: &mut VerifierRun,
) -> Result<(), Trouble> {
    let first = cached_or_run(job, tree, measured_by, "1").await?;
    let passed = keep(run, first);
    if passed {
        return Ok(());
    }
    let second = run_once(job, tree, node::root(&tree.manifest), "2").await?;
    if keep(run, second) {
        return Ok(());
    }
    let Some((at, before)) = trees.before else { return Ok(()) };
    let spent: u64 = run.attempts.iter().map(|attempt| attempt.run.duration_ms).sum();
    let longest = run.attempts.iter().map(|attempt| attempt.run.duration_ms).max().unwrap_or(0);
    // To know how it was before is worth less than an answer in time.
    if spent + 2 * longest > trees.time_left_ms {
        return Ok(());
    }
    let before = from_base::restore(trees.base, before, &job.verifier.from_base);
    let (attempt, evidence) = cached_or_run(job, &before, measured_by, "before").await?;
    run.evidence.entries.extend(evidence.entries);
    run.baseline = Some(Baseline { at, passed: attempt.run.passed(), test: attempt.test });
    Ok(())
}

fn keep(run: &mut VerifierRun, (attempt, evidence): (Attempt, EvidenceIndex)) -> bool {
    let passed = attempt.run.passed();
    run.evidence.entries.extend(evidence.entries);
    run.attempts.push(attempt);
    passed
}

async fn cached_or_run(
    job: &Job<'_>,
    restored: &Restored,
    measured_by: Digest,
    which: &str,
) -> Result<(Attempt, EvidenceIndex), Trouble> {
    let tree = node::root(&restored.manifest);
    let key = cache::key(job.verifier, tree, measured_by, &job.workshop.path, job.target);
    if let Some(key) = key
        && let Some(found) = job.workshop.cache.get(job.blobs, key).await?
    {
        return Ok(found);
    }
    let (attempt, evidence) = run_once(job, restored, tree, which).await?;
    if let Some(key) = key {
        job.workshop.cache.put(key, &attempt, &evidence);
    }
    Ok((attempt, evidence))
}
