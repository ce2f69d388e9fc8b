//! Fetching single records by their place.
//!
//! Every read checks the record's hash. Keeps a few files open; caches no records.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::codec;
use super::{Position, segment};
use crate::store::error::Error;
use crate::store::model::Recorded;

/// How many segment files stay open.
const OPEN_FILES_MAX: usize = 16;

/// Reads records; shared between threads.
#[derive(Debug)]
pub(in crate::store) struct Reader {
    folder: PathBuf,
    files: Mutex<BTreeMap<u32, Arc<File>>>,
}

impl Reader {
    pub(in crate::store) fn new(folder: PathBuf) -> Self {
        Self { folder, files: Mutex::default() }
    }

    /// The record at a place that the index or a scan told.
    pub(in crate::store) fn read(&self, position: Position) -> Result<Recorded, Error> {
        let path = segment::path_of(&self.folder, position.segment);
        let damaged = |what: String| Error::Damaged {
            segment: path.clone(),
            line: 0,
            offset: position.offset,
            what: format!("{what} (record of {} bytes)", position.length),
        };
        if position.length as usize > codec::LINE_BYTES_MAX {
            return Err(damaged("no record is so long".to_owned()));
        }
        let file = self.file(position.segment)?;
        let mut line = vec![0; position.length as usize];
        file.read_exact_at(&mut line, position.offset).map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged("the file ends before the record does".to_owned()),
            _ => Error::Io { doing: format!("read {}", path.display()), source },
        })?;
        let (hash, record) = codec::open_line(&line).map_err(damaged)?;
        codec::decode(hash, record).map_err(damaged)
    }

    /// Lets go of the files of segments before this one.
    pub(in crate::store) fn close_before(&self, segment: u32) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        *files = files.split_off(&segment);
    }

    fn file(&self, number: u32) -> Result<Arc<File>, Error> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&number) {
            return Ok(Arc::clone(file));
        }
        let path = segment::path_of(&self.folder, number);
        let file = File::open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::MissingSegment(path.clone()),
            _ => Error::Io { doing: format!("open {}", path.display()), source },
        })?;
        let file = Arc::new(file);
        if files.len() >= OPEN_FILES_MAX {
            // The oldest segment is the one least likely to be read again.
            files.pop_first();
        }
        files.insert(number, Arc::clone(&file));
        Ok(file)
    }
}
