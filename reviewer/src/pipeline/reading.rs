//! Reading what has to be read, with a note of what had to be and what could not.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, Evidence, EvidenceKind, EvidenceRef, Plan, Step, TaskSpec, TestRun};
use checkrein_shared::tree::{Change, Changeset, Entry, RelPath};

use super::load::RECORD_BYTES_MAX;
use crate::delta::{Delta, FILE_BYTES_MAX, KEPT_BYTES_MAX};
use crate::error::{Error, Stop};
use crate::quote;

/// The largest artifact that is read because the policy says so.
const ARTIFACT_BYTES_MAX: u64 = 64 << 20;

/// The largest changeset record that is read.
pub(super) const CHANGESET_BYTES_MAX: u64 = 512 << 20;

/// The most changed files that are read: a verdict lists the digest of each.
const FILES_MAX: usize = 10_000;

/// The most test runs and applied changesets that are read.
const RECORDS_MAX: usize = 2_000;

/// A blob's bytes, or why it can't be read for good.
type Readable = Result<Vec<u8>, String>;

pub(super) struct Reading<'a> {
    blobs: &'a dyn Blobs,
    required: BTreeSet<Digest>,
    missing: Vec<String>,
    kept_bytes: usize,
    files: usize,
}

impl<'a> Reading<'a> {
    /// Starts with what was read, or missed, by earlier stages.
    pub(super) fn new(blobs: &'a dyn Blobs, read: impl Iterator<Item = Digest>, missing: Vec<String>) -> Self {
        Self { blobs, required: read.collect(), missing, kept_bytes: 0, files: 0 }
    }

    /// What had to be read, and what could not.
    pub(super) fn finish(self) -> (BTreeSet<Digest>, Vec<String>) {
        (self.required, self.missing)
    }

    /// Reads what has to be read; `None`, and a note, where it can't be.
    pub(super) async fn read(&mut self, digest: Digest, limit: u64, what: &str) -> Result<Option<Vec<u8>>, Stop> {
        self.required.insert(digest);
        match self.optional(digest, limit, what).await? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(why) => {
                self.missing.push(format!("{what} can't be read: {why}"));
                Ok(None)
            }
        }
    }

    async fn optional(&self, digest: Digest, limit: u64, what: &str) -> Result<Readable, Stop> {
        match self.blobs.get(digest, limit).await {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(source @ blob::Error::Io { .. }) => {
                Err(Stop::Again(Error::Blobs { doing: format!("reading {what}"), source }))
            }
            Err(other) => Ok(Err(other.to_string())),
        }
    }

    /// Compares every changed file line by line.
    pub(super) async fn deltas(&mut self, changeset: &Changeset) -> Result<Vec<Delta>, Stop> {
        let mut deltas = Vec::with_capacity(changeset.changes().len());
        for change in changeset.changes() {
            let delta = self.delta(change).await?;
            self.kept_bytes += delta.kept_bytes();
            deltas.push(delta);
        }
        Ok(deltas)
    }

    /// The new version has to be read. Where the old one can't be, every line counts as new.
    async fn delta(&mut self, change: &Change) -> Result<Delta, Stop> {
        let path = change.path.clone();
        let new = match &change.new {
            None => None,
            Some(Entry::Symlink { target }) => Some(target.as_bytes().to_vec()),
            Some(entry) => match self.content(&path, entry).await? {
                Ok(bytes) => Some(bytes),
                Err(why) => return Ok(Delta::unread(path, change.old.is_none(), why)),
            },
        };
        let old = match &change.old {
            None => None,
            Some(Entry::Symlink { target }) => Some(target.as_bytes().to_vec()),
            Some(entry) => Some(match entry.blob() {
                Some(digest) => self.optional(digest, FILE_BYTES_MAX, "an old version").await?.unwrap_or_default(),
                None => Vec::new(),
            }),
        };
        Ok(Delta::between(path, old.as_deref(), new.as_deref()))
    }

    async fn content(&mut self, path: &RelPath, entry: &Entry) -> Result<Readable, Stop> {
        let why = match (entry.blob(), entry.size()) {
            (None, size) => format!("its {size} bytes are not in the blob store"),
            (_, size) if size > FILE_BYTES_MAX => format!("it has {size} bytes, more than {FILE_BYTES_MAX}"),
            _ if self.kept_bytes > KEPT_BYTES_MAX || self.files >= FILES_MAX => {
                return Ok(Err(self.beyond()));
            }
            (Some(digest), _) => {
                self.files += 1;
                let read = self.read(digest, FILE_BYTES_MAX, &format!("the content of `{path}`")).await?;
                return Ok(read.ok_or_else(|| "it is missing or damaged in the blob store".to_owned()));
            }
        };
        // Nobody looked at it, so this review can't approve it; a person can.
        self.required.insert(entry.content_digest());
        self.missing.push(format!("the content of `{path}` was not read: {why}"));
        Ok(Err(why))
    }

    /// One word for all files beyond the limits: a list of them could itself be too large.
    fn beyond(&mut self) -> String {
        let why = "the change as a whole is too large to be read".to_owned();
        if !self.missing.contains(&why) {
            self.missing.push(why.clone());
        }
        why
    }

    /// Reads the outcomes of the worker's test runs.
    pub(super) async fn tests(
        &mut self,
        evidence: &BTreeMap<EvidenceRef, Evidence>,
    ) -> Result<BTreeMap<EvidenceRef, TestRun>, Stop> {
        let mut tests = BTreeMap::new();
        let of_tests = evidence.iter().filter(|(reference, _)| reference.kind() == EvidenceKind::Test);
        for (reference, entry) in of_tests.take(RECORDS_MAX) {
            let what = format!("test run `{}`", quote::line(reference.as_str()));
            let Some(bytes) = self.read(entry.digest, RECORD_BYTES_MAX, &what).await? else { continue };
            match json::parse_as("test run", &bytes) {
                Ok(run) => {
                    tests.insert(reference.clone(), run);
                }
                Err(error) => self.missing.push(format!("{what} is no record of a test run: {error}")),
            }
        }
        Ok(tests)
    }

    /// Reads the kinds of evidence that the policy names, as far as they are new.
    pub(super) async fn must_read(
        &mut self,
        kinds: &BTreeSet<EvidenceKind>,
        evidence: &BTreeMap<EvidenceRef, Evidence>,
        fresh: &BTreeSet<EvidenceRef>,
        has_changes: bool,
    ) -> Result<(), Stop> {
        for kind in kinds {
            let new = evidence.iter().filter(|(reference, _)| reference.kind() == *kind && fresh.contains(reference));
            let mut found = false;
            for (reference, entry) in new {
                found = true;
                let what = format!("`{}`", quote::line(reference.as_str()));
                self.read(entry.digest, ARTIFACT_BYTES_MAX, &what).await?;
            }
            // Without a change there is nothing to show, so no diff is missing.
            let of_changes = matches!(kind, EvidenceKind::Diff | EvidenceKind::Changeset);
            if !found && (has_changes || !of_changes) {
                self.missing.push(format!("the policy wants `{}` evidence read, and there is none", kind.as_str()));
            }
        }
        Ok(())
    }

    /// Paths of changesets that were applied before. One that can't be read only makes a claim look less true.
    pub(super) async fn applied(&self, checkpoint: &Checkpoint) -> Result<BTreeSet<RelPath>, Stop> {
        let mut paths = BTreeSet::new();
        for applied in checkpoint.changesets.applied.iter().rev().take(RECORDS_MAX) {
            let bytes = self.optional(applied.hash, CHANGESET_BYTES_MAX, "an applied changeset").await?;
            if let Some(changeset) = bytes.ok().and_then(|bytes| Changeset::parse(&bytes).ok()) {
                paths.extend(changeset.touched().into_iter().cloned());
            }
        }
        Ok(paths)
    }

    /// The plan by its hash: the specification's, or one that was stored since.
    pub(super) async fn plan(&self, checkpoint: &Checkpoint, spec: &TaskSpec) -> Result<Option<Plan>, Stop> {
        let stated = &checkpoint.plan;
        if spec.plan.hash() == stated.hash {
            return Ok(Some(spec.plan.clone()));
        }
        // A plan's hash is the digest of the canonical bytes of its steps, so that it names their blob too.
        let steps = self.optional(stated.hash, RECORD_BYTES_MAX, "the plan").await?;
        let steps = steps.ok().and_then(|bytes| json::parse_as::<Vec<Step>>("plan", &bytes).ok());
        Ok(steps.map(|steps| Plan { version: stated.version, steps }))
    }
}
