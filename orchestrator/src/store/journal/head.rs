//! The head file: count and hash of the chain, kept outside the chain.
//!
//! A chain alone can't tell that its end was cut off. The file is replaced as a
//! whole, so it is never half written; it may be behind the journal, never ahead
//! of it, because it is written only about records that are on the disk.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use checkrein_shared::json;
use serde::{Deserialize, Serialize};

use super::Head;
use crate::store::error::Error;

/// The format of this file, which has its own number.
const HEAD_FORMAT: u64 = 1;

/// The longest text of a head file that is read.
const TEXT_BYTES_MAX: u64 = 4096;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    count: u64,
    format: u64,
    hash: Option<checkrein_shared::digest::Digest>,
}

/// The file `HEAD` beside the segments.
#[derive(Debug, Clone)]
pub(in crate::store) struct HeadFile {
    path: PathBuf,
}

impl HeadFile {
    pub(in crate::store) fn new(folder: &Path) -> Self {
        Self { path: folder.join("HEAD") }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says; `None` where there is no file.
    pub(in crate::store) fn read(&self) -> Result<Option<Head>, Error> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|file| file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { doing: format!("read {}", self.path.display()), source }),
        }
        let damaged = |what: String| Error::HeadDamaged { path: self.path.clone(), what };
        let text: Text = json::parse_as("head file", &bytes).map_err(|error| damaged(error.to_string()))?;
        if text.format != HEAD_FORMAT {
            return Err(Error::UnknownFormat { path: self.path.clone(), found: text.format, supported: HEAD_FORMAT });
        }
        if (text.count == 0) != text.hash.is_none() {
            return Err(damaged("count and hash contradict each other".to_owned()));
        }
        Ok(Some(Head { count: text.count, hash: text.hash }))
    }

    /// Replaces the file, durably.
    pub(in crate::store) fn write(&self, head: Head) -> std::io::Result<()> {
        let temp = self.path.with_extension("tmp");
        let mut text = serde_json::to_vec(&Text { count: head.count, format: HEAD_FORMAT, hash: head.hash })?;
        text.push(b'\n');
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temp)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&temp, &self.path)?;
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}
