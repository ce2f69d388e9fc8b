//! Checking a whole folder of blobs without changing anything in it.
//!
//! Works on a folder that another process has open. It reports; it repairs and
//! removes nothing.

use std::fs::DirEntry;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Error, LOCK_FILE, TEMP_FOLDER, path_of};
use crate::digest::{Digest, Hasher};

/// At most this many problems are listed; all are counted.
const LISTED_MAX: usize = 1_000;

/// What is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// The bytes have another digest than the name says.
    Content {
        /// The digest in the name.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// The file could not be read.
    Unreadable(String),
    /// Nothing that this module writes has such a name or lies there.
    Stray,
}

/// What [`verify_folder`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// How many sound blobs there are.
    pub blobs: u64,
    /// How many bytes they hold.
    pub bytes: u64,
    /// How many files are damaged, unreadable or stray.
    pub problems: u64,
    /// The first thousand of these.
    pub listed: Vec<(PathBuf, Damage)>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems == 0
    }

    fn add(&mut self, path: PathBuf, damage: Damage) {
        self.problems += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push((path, damage));
        }
    }
}

/// Reads every blob below `root` and compares it with its name. Changes nothing.
///
/// # Errors
///
/// [`Error::Io`] where a folder can't be listed.
pub fn verify_folder(root: &Path) -> Result<VerifyReport, Error> {
    let mut report = VerifyReport::default();
    for middle in entries(root)? {
        let name = middle.file_name();
        if name == TEMP_FOLDER || name == LOCK_FILE {
            continue;
        }
        if !is_folder(&middle) {
            report.add(middle.path(), Damage::Stray);
            continue;
        }
        for leaf in entries(&middle.path())? {
            if !is_folder(&leaf) {
                report.add(leaf.path(), Damage::Stray);
                continue;
            }
            for blob in entries(&leaf.path())? {
                verify_blob(root, &blob.path(), &mut report);
            }
        }
    }
    Ok(report)
}

fn verify_blob(root: &Path, path: &Path, report: &mut VerifyReport) {
    let named = path.file_name().and_then(|name| name.to_str()).and_then(|hex| format!("sha256:{hex}").parse().ok());
    let Some(expected) = named.filter(|digest| path_of(root, *digest) == path) else {
        return report.add(path.to_path_buf(), Damage::Stray);
    };
    match measure(path) {
        Ok((found, size)) if found == expected => {
            report.blobs += 1;
            report.bytes += size;
        }
        Ok((found, _)) => report.add(path.to_path_buf(), Damage::Content { expected, found }),
        Err(error) => report.add(path.to_path_buf(), Damage::Unreadable(error.to_string())),
    }
}

fn measure(path: &Path) -> std::io::Result<(Digest, u64)> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hasher.finish(), size)),
            count => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// The entries of a folder in the order of their names, so that reports are alike.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let doing = |source| Error::Io { doing: format!("list {}", folder.display()), source };
    let mut entries = folder.read_dir().map_err(doing)?.collect::<Result<Vec<_>, _>>().map_err(doing)?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}
