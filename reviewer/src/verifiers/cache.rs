//! Passes of verifiers, remembered on disk: the same command on the same bytes
//! need not run twice. Failures are never remembered.
//!
//! An entry that can't be read, or whose evidence is gone, counts as absent. The
//! folder is the reviewer's own: verifiers can neither read nor write it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::{Digest, Hasher};
use checkrein_shared::json;
use checkrein_shared::records::{Evidence, EvidenceIndex, EvidenceRef, TestRun};
use checkrein_shared::tree::RelPath;
use serde::{Deserialize, Serialize};

use super::Attempt;
use crate::settings::Verifier;

/// The most passes that are remembered.
const ENTRIES_MAX: usize = 1_000;

/// The most carried files that are looked at; with more, a pass is not remembered.
const CARRIED_MAX: usize = 200_000;

/// The largest entry that is read.
const ENTRY_BYTES_MAX: u64 = 64 << 10;

/// The passes.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass {
    version: u32,
    run: TestRun,
    test: EvidenceRef,
    entries: BTreeMap<EvidenceRef, Evidence>,
}

const VERSION: u32 = 1;

impl Cache {
    /// Opens the folder, and makes it where it is missing.
    pub(crate) fn open(folder: PathBuf) -> std::io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn file(&self, key: Digest) -> PathBuf {
        self.folder.join(key.to_hex())
    }

    /// The pass with this key, if its evidence is still there.
    pub(super) async fn get(
        &self,
        blobs: &dyn Blobs,
        key: Digest,
    ) -> Result<Option<(Attempt, EvidenceIndex)>, blob::Error> {
        let Some(pass) = self.read(key) else { return Ok(None) };
        for evidence in pass.entries.values() {
            // It is named again, maybe long after it was stored: no garbage collector may take it before that is journaled.
            if blobs.keep(evidence.digest).await? != Some(evidence.size) {
                return Ok(None);
            }
        }
        let attempt = Attempt { run: pass.run, test: pass.test, tail: String::new() };
        Ok(Some((attempt, EvidenceIndex { previous: None, entries: pass.entries })))
    }

    fn read(&self, key: Digest) -> Option<Pass> {
        let file = self.file(key);
        let small = fs::metadata(&file).is_ok_and(|m| m.len() <= ENTRY_BYTES_MAX);
        let bytes = small.then(|| fs::read(&file).ok()).flatten()?;
        let pass: Pass = json::parse_as("remembered pass", &bytes).ok()?;
        (pass.version == VERSION && pass.run.passed()).then_some(pass)
    }

    /// Remembers a pass. That it can't be remembered harms nothing but speed.
    pub(super) fn put(&self, key: Digest, attempt: &Attempt, evidence: &EvidenceIndex) {
        if !attempt.run.passed() {
            return;
        }
        let pass = Pass {
            version: VERSION,
            run: attempt.run.clone(),
            test: attempt.test.clone(),
            entries: evidence.entries.clone(),
        };
        if let Err(error) = self.write(key, &pass) {
            tracing::debug!(%error, "a verifier's pass can't be remembered");
        }
    }

    fn write(&self, key: Digest, pass: &Pass) -> std::io::Result<()> {
        self.prune()?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        serde_json::to_writer(&mut file, pass)?;
        file.persist(self.file(key))?;
        Ok(())
    }

    /// Keeps the folder bounded: the oldest entries go first.
    fn prune(&self) -> std::io::Result<()> {
        let mut entries: Vec<(i64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            entries.push((entry.metadata()?.mtime(), entry.path()));
        }
        entries.sort();
        let excess = (entries.len() + 1).saturating_sub(ENTRIES_MAX);
        entries.iter().take(excess).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

/// Everything on which a pass depends; `None` where that can't be told, so that nothing is remembered.
pub(super) fn key(
    verifier: &Verifier,
    tree: Digest,
    measured_by: Digest,
    path: &OsStr,
    target: Option<&Path>,
) -> Option<Digest> {
    // What lies beyond the network can change at any time.
    if !verifier.offline {
        return None;
    }
    let carried = fingerprint(target, &verifier.carry)?;
    let path = Digest::of(path.as_encoded_bytes());
    let globs = verifier.from_base.written();
    let names: Vec<String> = verifier.carry.iter().map(ToString::to_string).collect();
    let timeout = u64::try_from(verifier.timeout.as_millis()).ok()?;
    let parts = (VERSION, &verifier.name, &verifier.argv, timeout, names, globs, tree, measured_by, carried, path);
    json::digest(&parts).ok()
}

/// Names the carried files by path, size, mode and time of change: reading them all would cost more than the run.
fn fingerprint(target: Option<&Path>, carry: &[RelPath]) -> Option<Digest> {
    let mut hasher = Hasher::new();
    if carry.is_empty() {
        return Some(hasher.finish());
    }
    let target = target?;
    let mut pending: Vec<PathBuf> = carry.iter().map(|path| path.under(target)).collect();
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        seen += 1;
        if seen + pending.len() > CARRIED_MAX {
            return None;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        hasher.update(path.as_os_str().as_encoded_bytes());
        let facts = [metadata.len(), u64::from(metadata.mode()), metadata.ino()];
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        facts.iter().for_each(|n| hasher.update(&n.to_be_bytes()));
        times.iter().for_each(|n| hasher.update(&n.to_be_bytes()));
        if metadata.is_dir() {
            let mut children: Vec<PathBuf> = fs::read_dir(&path).ok()?.flatten().map(|e| e.path()).collect();
            children.sort();
            pending.extend(children);
        }
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::globs::Globs;

    fn verifier() -> Verifier {
        Verifier {
            name: "unit".into(),
            argv: vec!["sh".into(), "test.sh".into()],
            timeout: Duration::from_secs(1),
            offline: true,
            carry: Vec::new(),
            from_base: Globs::new(["test.sh"]).unwrap(),
        }
    }

    #[test]
    fn the_key_follows_everything_that_a_pass_depends_on() {
        let (tree, base) = (Digest::of("tree"), Digest::of("base"));
        let of = |v: &Verifier| key(v, tree, base, OsStr::new("/bin"), None);
        let first = of(&verifier());
        assert!(first.is_some());
        assert_eq!(of(&verifier()), first);
        assert_ne!(key(&verifier(), base, base, OsStr::new("/bin"), None), first);
        assert_ne!(key(&verifier(), tree, tree, OsStr::new("/bin"), None), first);
        assert_ne!(key(&verifier(), tree, base, OsStr::new("/usr/bin"), None), first);
        assert_ne!(of(&Verifier { argv: vec!["true".into()], ..verifier() }), first);
        assert_ne!(of(&Verifier { from_base: Globs::new(["x"]).unwrap(), ..verifier() }), first);
    }

    #[test]
    fn what_can_change_unseen_is_not_remembered() {
        let of = |v: &Verifier, target| key(v, Digest::of(""), Digest::of(""), OsStr::new(""), target);
        assert_eq!(of(&Verifier { offline: false, ..verifier() }, None), None);
        let carrying = Verifier { carry: vec!["deps".parse().unwrap()], ..verifier() };
        assert_eq!(of(&carrying, None), None);

        let target = tempfile::tempdir().unwrap();
        fs::create_dir(target.path().join("deps")).unwrap();
        let before = of(&carrying, Some(target.path()));
        fs::write(target.path().join("deps/new"), "x").unwrap();
        assert_ne!(of(&carrying, Some(target.path())), before);
    }

    /// Remembers what it was asked to keep.
    struct Keeping(std::sync::Mutex<Vec<Digest>>);

    #[async_trait::async_trait]
    impl Blobs for Keeping {
        async fn put(&self, _: &[u8]) -> Result<Digest, blob::Error> {
            unreachable!("nothing is stored")
        }

        async fn get(&self, digest: Digest, _: u64) -> Result<Vec<u8>, blob::Error> {
            Err(blob::Error::Missing(digest))
        }

        async fn size(&self, _: Digest) -> Result<Option<u64>, blob::Error> {
            Ok(Some(SIZE))
        }

        async fn keep(&self, digest: Digest) -> Result<Option<u64>, blob::Error> {
            self.0.lock().unwrap().push(digest);
            self.size(digest).await
        }
    }

    const SIZE: u64 = 7;

    #[tokio::test]
    async fn the_evidence_of_a_remembered_pass_is_kept_before_it_is_named_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().to_owned()).unwrap();
        let subject = crate::testing::Sample::new().verifier("unit", true).subject();
        let mut index = subject.runs[0].evidence.clone();
        index.entries.values_mut().for_each(|evidence| evidence.size = SIZE);
        assert!(!index.entries.is_empty());
        cache.put(Digest::of("pass"), &subject.runs[0].attempts[0], &index);
        let blobs = Keeping(std::sync::Mutex::default());
        assert!(cache.get(&blobs, Digest::of("pass")).await.unwrap().is_some());
        let named: Vec<Digest> = index.entries.values().map(|evidence| evidence.digest).collect();
        assert_eq!(*blobs.0.lock().unwrap(), named);
    }

    #[test]
    fn the_folder_stays_bounded_and_failures_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().to_owned()).unwrap();
        let subject = crate::testing::Sample::new().verifier("unit", true).verifier("bad", false).subject();
        for n in 0..ENTRIES_MAX + 5 {
            fs::write(folder.path().join(format!("old-{n}")), "x").unwrap();
        }
        let (pass, fail) = (&subject.runs[0].attempts[0], &subject.runs[1].attempts[0]);
        cache.put(Digest::of("fail"), fail, &EvidenceIndex::default());
        assert!(cache.read(Digest::of("fail")).is_none());
        cache.put(Digest::of("pass"), pass, &EvidenceIndex::default());
        assert_eq!(cache.read(Digest::of("pass")).unwrap().run, pass.run);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), ENTRIES_MAX);
        fs::write(cache.file(Digest::of("pass")), "{").unwrap();
        assert!(cache.read(Digest::of("pass")).is_none());
    }
}
