//! Digests of files that have not changed since they were last read.
//!
//! An entry holds only while size, times, inode and mode are the same, and only
//! if the file had rested before it was read: two writes within one tick of the
//! file system's clock look alike. The cache makes snapshots cheap and never
//! decides anything else: `verify` reads everything, and a damaged cache is empty.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use checkrein_shared::digest::Digest;
use checkrein_shared::tree::RelPath;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// How long a file must have rested before it was read, in nanoseconds: longer than any file system's clock tick.
const REST_NANOS: i128 = 2_000_000_000;

const HEADER: &str = "checkrein stat cache 1";

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatKey {
    size: i64,
    mtime: (i64, i64),
    ctime: (i64, i64),
    device: u64,
    inode: u64,
    mode: u32,
}

/// A cached digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cached {
    path: RelPath,
    stat: StatKey,
    digest: Digest,
    /// The file system's time before the file was read, in nanoseconds.
    read_at: i64,
}

/// The cache of one directory's files.
#[derive(Debug, Default)]
pub struct StatCache {
    file: Option<PathBuf>,
    entries: BTreeMap<RelPath, Cached>,
}

impl StatKey {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size,
            mtime: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
            ctime: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
        }
    }

    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.unsigned_abs()
    }

    /// Whether the file had rested at a time: no write since can have left these times.
    fn rested_at(&self, time: i64) -> bool {
        let latest = self.mtime.max(self.ctime);
        i128::from(latest.0) * 1_000_000_000 + i128::from(latest.1) + REST_NANOS < i128::from(time)
    }
}

/// The parts of a second are of different types on different systems, and always below 2^30.
fn nanos(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

impl StatCache {
    /// A cache that is kept in `file`, which must be outside of the directory that it is about.
    pub fn open(file: &Path) -> Self {
        let entries = match read(file) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(file = %file.display(), %error, "a stat cache is empty now: it could not be read");
                }
                BTreeMap::new()
            }
        };
        Self { file: Some(file.to_owned()), entries }
    }

    /// A cache that is not kept.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Writes the cache to its file.
    ///
    /// # Errors
    ///
    /// The file system's; the old file is whole then.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = format!("{HEADER}\n").into_bytes();
        for entry in self.entries.values() {
            serde_json::to_writer(&mut text, entry)?;
            text.push(b'\n');
        }
        let seal = Digest::of(&text);
        writeln!(text, "{seal}")?;
        let directory = file.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        new.write_all(&text)?;
        new.persist(file)?;
        Ok(())
    }

    /// The digest of a file in this state, if it is known for certain.
    pub(crate) fn get(&self, path: &RelPath, stat: &StatKey) -> Option<Digest> {
        let cached = self.entries.get(path)?;
        (cached.stat == *stat && stat.rested_at(cached.read_at)).then_some(cached.digest)
    }

    /// Remembers a digest. `read_at` is [`StatCache::now`] before the file was read.
    pub(crate) fn put(&mut self, path: RelPath, stat: StatKey, digest: Digest, read_at: i64) {
        self.entries.insert(path.clone(), Cached { path, stat, digest, read_at });
    }

    /// Makes every entry look as if its file had rested for long, instead of waiting for that.
    #[cfg(test)]
    pub(crate) fn age(&mut self) {
        for cached in self.entries.values_mut() {
            cached.read_at += 60_000_000_000;
        }
    }

    /// Forgets files that are gone.
    pub(crate) fn retain(&mut self, exists: impl Fn(&RelPath) -> bool) {
        self.entries.retain(|path, _| exists(path));
    }

    /// The file system's time now, in nanoseconds: the time of a file that is written for this.
    pub(crate) fn now(&self) -> io::Result<i64> {
        let probe = match self.file.as_ref().and_then(|file| file.parent()) {
            Some(directory) => tempfile::tempfile_in(directory)?,
            None => tempfile::tempfile()?,
        };
        let stat = rustix::fs::fstat(&probe)?;
        Ok(stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanos(stat.st_mtime_nsec)))
    }
}

fn read(file: &Path) -> io::Result<BTreeMap<RelPath, Cached>> {
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    let text = fs::read(file)?;
    let body = text.strip_suffix(b"\n").ok_or_else(|| invalid("it is cut off"))?;
    let start = body.iter().rposition(|b| *b == b'\n').ok_or_else(|| invalid("it is cut off"))? + 1;
    if Digest::of(&text[..start]).to_string().as_bytes() != &body[start..] {
        return Err(invalid("its seal does not fit"));
    }
    let mut lines = text[..start - 1].split(|b| *b == b'\n');
    if lines.next() != Some(HEADER.as_bytes()) {
        return Err(invalid("it is of another version"));
    }
    let parse = |line| serde_json::from_slice::<Cached>(line).map(|cached| (cached.path.clone(), cached));
    Ok(lines.map(parse).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seconds: i64) -> StatKey {
        StatKey { size: 1, mtime: (seconds, 5), ctime: (seconds, 5), device: 1, inode: 1, mode: 0o100_644 }
    }

    #[test]
    fn a_file_that_had_not_rested_is_read_again() {
        let mut cache = StatCache::in_memory();
        let path = RelPath::from_bytes("a").unwrap();
        cache.put(path.clone(), key(100), Digest::of("x"), 101_000_000_000);
        assert_eq!(cache.get(&path, &key(100)), None);
        cache.put(path.clone(), key(100), Digest::of("x"), 103_000_000_000);
        assert_eq!(cache.get(&path, &key(100)), Some(Digest::of("x")));
        // The owner may set back the first time, never the second.
        let touched = StatKey { ctime: (102, 0), ..key(100) };
        assert_eq!(cache.get(&path, &touched), None);
    }

    #[test]
    fn the_cache_survives_a_round_trip_and_a_damaged_one_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache");
        let mut cache = StatCache::open(&file);
        let path = RelPath::from_bytes(&b"\xff\n"[..]).unwrap();
        cache.put(path.clone(), key(1), Digest::of("x"), i64::MAX);
        cache.save().unwrap();
        assert_eq!(StatCache::open(&file).get(&path, &key(1)), Some(Digest::of("x")));
        let text = fs::read_to_string(&file).unwrap();
        for damaged in [text.replace("\"size\":1", "\"size\":2"), text[..text.len() - 1].to_owned(), String::new()] {
            fs::write(&file, damaged).unwrap();
            assert!(StatCache::open(&file).entries.is_empty());
        }
    }
}
