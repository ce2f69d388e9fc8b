//! How much is in a data folder. Counts files; it checks nothing.

use std::path::Path;

use serde::Serialize;

use super::DataFolder;
use crate::store::{self, Error};

/// A number of files and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// How large together.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What [`stats`] counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// How many records the journal has had; the newest has this number.
    pub records: u64,
    /// How many of them were pruned.
    pub pruned: u64,
    /// The segments of the journal.
    pub segments: Amount,
    /// What crashes left unfinished and was put aside.
    pub torn: Amount,
    /// The index.
    pub index: Amount,
    /// Broken indexes that were moved aside; they may be removed.
    pub aside: Amount,
    /// The blobs.
    pub blobs: Amount,
}

/// Counts what is there. Changes nothing, and works while another process has the folder open.
///
/// # Errors
///
/// [`Error::Io`] where a folder can't be listed, and what is wrong with the ends of the journal.
pub fn stats(data: &DataFolder) -> Result<Stats, Error> {
    let mut stats = Stats::default();
    let store = data.store();
    (stats.pruned, stats.records) = store::extent(&store)?;
    each_file(&store.join("journal"), &mut |path, bytes| match path.extension().and_then(|name| name.to_str()) {
        Some("jsonl") => stats.segments.add(bytes),
        Some("torn") => stats.torn.add(bytes),
        _ => {}
    })?;
    each_file(&store.join("index"), &mut |_, bytes| stats.index.add(bytes))?;
    for folder in store.read_dir().map_err(store::io_error(&store))?.filter_map(Result::ok) {
        if folder.file_name().to_string_lossy().starts_with("index.aside-") {
            each_file(&folder.path(), &mut |_, bytes| stats.aside.add(bytes))?;
        }
    }
    each_file(&data.blobs(), &mut |path, bytes| {
        if path.file_name().is_some_and(|name| name.len() == 64) {
            stats.blobs.add(bytes);
        }
    })?;
    Ok(stats)
}

/// Every file below a folder, which need not be there.
fn each_file(folder: &Path, see: &mut dyn FnMut(&Path, u64)) -> Result<(), Error> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(store::io_error(folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(store::io_error(folder))?;
        // What goes away meanwhile, as temporary files do, is not there.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            each_file(&entry.path(), see)?;
        } else {
            see(&entry.path(), metadata.len());
        }
    }
    Ok(())
}
