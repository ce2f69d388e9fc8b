//! Reading a segment from its beginning and checking the chain, line by line.
//!
//! Stops at the first flaw and says where it is. It decides nothing about it:
//! recovery may repair, verification reports.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::codec::{self, LINE_BYTES_MAX};
use super::{Head, Position, segment};
use crate::store::error::Error;
use crate::store::model::Recorded;
use crate::store::prune::{PRUNED, Pruned};

/// A line that was read and checked.
#[derive(Debug)]
pub(in crate::store) struct Entry {
    pub(in crate::store) position: Position,
    /// The chain's head with this record.
    pub(in crate::store) head: Head,
    format: u64,
    bytes: Vec<u8>,
}

impl Entry {
    /// The record.
    pub(in crate::store) fn decode(&self) -> Result<Recorded, String> {
        let (hash, record) = codec::parts(&self.bytes)?;
        codec::decode(hash, record)
    }

    /// The record without event (but in the store's own), decision and state; and the text of the state.
    pub(in crate::store) fn decode_slim(&self) -> Result<(Recorded, Vec<u8>), String> {
        let (hash, record) = codec::parts(&self.bytes)?;
        codec::decode_slim(hash, record)
    }

    /// What it says about pruning, if that is what it is about.
    pub(super) fn pruned(&self) -> Option<Pruned> {
        // A look at the bytes spares reading every record in full.
        let mark = PRUNED.as_bytes();
        let named = self.bytes.windows(mark.len()).any(|bytes| bytes == mark);
        let record = named.then(|| self.decode().ok())??.record;
        super::pruned(&record.kind, &record.event)?.ok()
    }

    /// The record, if its text is exactly what would be written again.
    pub(in crate::store) fn decode_strictly(&self) -> Result<Recorded, String> {
        let (hash, record) = codec::parts(&self.bytes)?;
        codec::decode_strictly(self.format, hash, record)
    }
}

/// The first line that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Flaw {
    pub(in crate::store) line: u64,
    pub(in crate::store) offset: u64,
    pub(in crate::store) what: String,
    /// Where the line has no end: the length of the sound record that it begins with, if it does.
    pub(in crate::store) sound_bytes: Option<u64>,
}

/// Why a scan went no further.
#[derive(Debug)]
pub(in crate::store) enum ScanError {
    /// A flaw in the segment.
    Flaw(Flaw),
    /// Everything else.
    Other(Error),
}

impl From<Error> for ScanError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Reads one segment.
#[derive(Debug)]
pub(in crate::store) struct Scan {
    path: PathBuf,
    segment: u32,
    format: u64,
    reader: BufReader<File>,
    line: u64,
    offset: u64,
    head: Head,
}

impl Scan {
    /// Opens a segment and checks its header, also against the head before it, where that is known.
    pub(in crate::store) fn open(folder: &Path, number: u32, before: Option<Head>) -> Result<Self, Error> {
        let path = segment::path_of(folder, number);
        let file = File::open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::MissingSegment(path.clone()),
            _ => Error::Io { doing: format!("open {}", path.display()), source },
        })?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        (&mut reader)
            .take(LINE_BYTES_MAX as u64)
            .read_until(b'\n', &mut line)
            .map_err(Error::io(format!("read {}", path.display())))?;
        let header = segment::read_header(&path, number, &line)?;
        if before.is_some_and(|before| before != header.head()) {
            let what = "the header does not continue the segment before".to_owned();
            return Err(Error::Damaged { segment: path, line: 1, offset: 0, what });
        }
        let (format, head) = (header.format, header.head());
        Ok(Self { path, segment: number, format, reader, line: 1, offset: line.len() as u64, head })
    }

    /// Begins at the record number `sequence`, which lies at `position`, and believes what
    /// that record says about the one before it.
    pub(in crate::store) fn open_at(folder: &Path, position: Position, sequence: u64) -> Result<Self, Error> {
        let mut scan = Self::open(folder, position.segment, None)?;
        let doing = || format!("read {}", scan.path.display());
        let mut line = vec![0; (position.length as usize).min(LINE_BYTES_MAX)];
        scan.reader.get_ref().read_exact_at(&mut line, position.offset).map_err(Error::io(doing()))?;
        let previous = codec::open_line(&line)
            .and_then(|(_, record)| codec::link(record))
            .map_err(|what| Error::Damaged { segment: scan.path.clone(), line: 0, offset: position.offset, what })?;
        scan.reader.seek(SeekFrom::Start(position.offset)).map_err(Error::io(doing()))?;
        let head = Head { count: sequence - 1, hash: previous.previous };
        Ok(Self { line: 0, offset: position.offset, head, ..scan })
    }

    /// The chain's head after what was read so far.
    pub(in crate::store) fn head(&self) -> Head {
        self.head
    }

    /// The segment's format.
    pub(in crate::store) fn format(&self) -> u64 {
        self.format
    }

    /// Where the next line begins.
    pub(in crate::store) fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of the line that was read last; 0 where the scan began in the middle.
    pub(in crate::store) fn line(&self) -> u64 {
        self.line
    }

    /// The file.
    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    /// The next record, or `None` at the end of the segment.
    pub(in crate::store) fn next(&mut self) -> Result<Option<Entry>, ScanError> {
        let mut bytes = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut bytes)
            .map_err(Error::io(format!("read {}", self.path.display())))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let flaw = |what: String, sound_bytes| {
            ScanError::Flaw(Flaw { line: self.line + 1, offset: self.offset, what, sound_bytes })
        };
        if bytes.last() != Some(&b'\n') {
            return Err(flaw("the line has no end".to_owned(), sound_bytes(self.head, &bytes)));
        }
        let head = follows(self.head, &bytes).map_err(|what| flaw(what, None))?;
        let length = u32::try_from(bytes.len()).expect("a line is shorter than LINE_BYTES_MAX");
        let position = Position { segment: self.segment, offset: self.offset, length };
        self.head = head;
        self.line += 1;
        self.offset += bytes.len() as u64;
        Ok(Some(Entry { position, head, format: self.format, bytes }))
    }

    /// Has the next line read from the file anew.
    pub(in crate::store) fn again(&mut self) -> Result<(), Error> {
        let sought = self.reader.seek(SeekFrom::Start(self.offset));
        sought.map(drop).map_err(Error::io(format!("read {}", self.path.display())))
    }

    /// The record that the flaw is about, where it lacks only its line's end. Opening adds that; whoever changes
    /// nothing takes the record as it is.
    pub(in crate::store) fn without_end(&mut self, flaw: &Flaw) -> Result<Option<Entry>, Error> {
        let Some(length) = flaw.sound_bytes.and_then(|sound| usize::try_from(sound).ok()) else { return Ok(None) };
        let mut bytes = vec![0; length];
        let file = self.reader.get_ref();
        file.read_exact_at(&mut bytes, self.offset).map_err(Error::io(format!("read {}", self.path.display())))?;
        bytes.push(b'\n');
        let Ok(head) = follows(self.head, &bytes) else { return Ok(None) };
        let length = u32::try_from(bytes.len()).expect("a line is shorter than LINE_BYTES_MAX");
        let position = Position { segment: self.segment, offset: self.offset, length };
        self.head = head;
        self.line += 1;
        self.offset += bytes.len() as u64 - 1;
        Ok(Some(Entry { position, head, format: self.format, bytes }))
    }

    /// As [`Scan::next`], where nothing can be repaired.
    pub(in crate::store) fn next_sound(&mut self) -> Result<Option<Entry>, Error> {
        self.next().map_err(|error| match error {
            ScanError::Flaw(flaw) => self.damaged(flaw),
            ScanError::Other(error) => error,
        })
    }

    /// A flaw as the error that people see.
    pub(in crate::store) fn damaged(&self, flaw: Flaw) -> Error {
        let Flaw { line, offset, what, .. } = flaw;
        Error::Damaged { segment: self.path.clone(), line, offset, what }
    }
}

/// The length of the first JSON value in `bytes`, if it is the record that is due after `before`.
pub(super) fn sound_bytes(before: Head, bytes: &[u8]) -> Option<u64> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    let mut line = bytes[..length].to_vec();
    line.push(b'\n');
    follows(before, &line).ok().map(|_| length as u64)
}

/// Checks one line against the chain's head before it; returns the head with it.
pub(super) fn follows(before: Head, line: &[u8]) -> Result<Head, String> {
    let (hash, record) = codec::open_line(line)?;
    let link = codec::link(record)?;
    if link.sequence != before.count + 1 {
        return Err(format!("record {} stands where {} should be", link.sequence, before.count + 1));
    }
    if link.previous != before.hash {
        return Err(format!("record {} does not continue the record before it", link.sequence));
    }
    Ok(Head { count: link.sequence, hash: Some(hash) })
}

/// The head after the last record of a segment, read from its end. A segment may hold none.
pub(super) fn last_record(folder: &Path, number: u32) -> Result<Head, Error> {
    let path = segment::path_of(folder, number);
    let doing = || format!("read {}", path.display());
    let file = File::open(&path).map_err(Error::io(doing()))?;
    let length = file.metadata().map_err(Error::io(doing()))?.len();
    let mut size = 1 << 16;
    let (start, line) = loop {
        let start = length.saturating_sub(size);
        let mut tail = vec![0; usize::try_from(length - start).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut tail, start).map_err(Error::io(doing()))?;
        // The line before ends where the last one begins; the last byte is the last one's own end.
        let before = tail.iter().rev().skip(1).position(|b| *b == b'\n');
        match before {
            Some(distance) => break (length - distance as u64 - 1, tail.split_off(tail.len() - distance - 1)),
            None if start == 0 || size > LINE_BYTES_MAX as u64 => break (start, tail),
            None => size *= 2,
        }
    };
    if start == 0
        && let Ok(header) = codec::Header::decode(&line)
    {
        return Ok(header.head());
    }
    let sound = codec::open_line(&line).and_then(|(hash, record)| Ok((hash, codec::link(record)?)));
    match sound {
        Ok((hash, link)) => Ok(Head { count: link.sequence, hash: Some(hash) }),
        Err(what) => Err(Error::Damaged { segment: path, line: 0, offset: start, what }),
    }
}
