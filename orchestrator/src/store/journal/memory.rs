//! A journal whose segments are bytes in memory, for the simulation.
//!
//! Lines, headers, the check of the chain and what counts as an unfinished end
//! are the real ones; only the files are not. It syncs nothing: which bytes
//! survive a crash is for whoever keeps them.

use std::path::PathBuf;

use super::append::Appended;
use super::codec::{self, Header, Prepared};
use super::recovery::{Checker, Witness};
use super::repair::is_unfinished;
use super::scan::{follows, sound_bytes};
use super::{Head, Position, segment};
use crate::store::error::Error;
use crate::store::model::Recorded;

/// The bytes of all segments, oldest first.
pub(in crate::store) type Segments = Vec<Vec<u8>>;

/// A journal in memory.
#[derive(Debug)]
pub(in crate::store) struct MemoryJournal {
    segments: Segments,
    head: Head,
    segment_bytes_max: usize,
}

impl MemoryJournal {
    /// No journal at all.
    pub(in crate::store) fn empty(segment_bytes_max: usize) -> Self {
        Self::crashed(Segments::new(), segment_bytes_max)
    }

    /// Bytes that nobody has read yet: to be opened before anything else.
    pub(in crate::store) fn crashed(segments: Segments, segment_bytes_max: usize) -> Self {
        Self { segments, head: Head::default(), segment_bytes_max }
    }

    /// Opens what a crash has left, or begins where there is nothing. Returns the places of all records.
    pub(in crate::store) fn open(
        segments: Segments,
        segment_bytes_max: usize,
        witnesses: &[(&'static str, Head)],
    ) -> Result<(Self, Vec<Appended>), Error> {
        let witnesses: Vec<_> = witnesses.iter().map(|(name, head)| Witness { name, head: *head }).collect();
        let checker = Checker { witnesses: &witnesses };
        let mut journal = Self::crashed(segments, segment_bytes_max);
        if journal.segments.is_empty() {
            journal.begin_segment();
        }
        let mut found = Vec::new();
        for number in 0..journal.segments.len() {
            journal.scan(number, &checker, &mut found)?;
        }
        checker.check_end(journal.head)?;
        Ok((journal, found))
    }

    fn begin_segment(&mut self) {
        let number = u32::try_from(self.segments.len() + 1).expect("a simulation has few segments");
        self.segments.push(Header::new(number, self.head).encode());
    }

    fn scan(&mut self, index: usize, checker: &Checker<'_>, found: &mut Vec<Appended>) -> Result<(), Error> {
        let number = u32::try_from(index + 1).expect("a simulation has few segments");
        let path = segment::path_of(&PathBuf::from("simulated"), number);
        let last = index + 1 == self.segments.len();
        let damaged =
            |line, offset: usize, what| Error::Damaged { segment: path.clone(), line, offset: offset as u64, what };
        let mut offset = end_of_line(&self.segments[index], 0);
        let header = segment::read_header(&path, number, &self.segments[index][..offset])?;
        if header.head() != self.head {
            return Err(damaged(1, 0, "the header does not continue the segment before".to_owned()));
        }
        checker.check(self.head)?;
        let mut line = 1;
        while offset < self.segments[index].len() {
            line += 1;
            let end = end_of_line(&self.segments[index], offset);
            let whole = self.segments[index][end - 1] == b'\n';
            match follows(self.head, &self.segments[index][offset..end]) {
                Ok(head) if whole => {
                    checker.check(head)?;
                    let length = u32::try_from(end - offset).expect("lines are bounded");
                    let position = Position { segment: number, offset: offset as u64, length };
                    found.push(Appended { position, head });
                    (self.head, offset) = (head, end);
                }
                flaw if last => self.repair(index, offset, checker, || {
                    damaged(line, offset, flaw.err().unwrap_or_else(|| "the line has no end".to_owned()))
                })?,
                flaw => return Err(damaged(line, offset, flaw.err().unwrap_or_default())),
            }
        }
        Ok(())
    }

    /// What [`super::repair`] does to a file: adds the end of a line, cuts an unfinished one off, or refuses.
    fn repair(
        &mut self,
        index: usize,
        offset: usize,
        checker: &Checker<'_>,
        damaged: impl FnOnce() -> Error,
    ) -> Result<(), Error> {
        let bytes = &mut self.segments[index];
        let tail = &bytes[offset..];
        if tail.last() != Some(&b'\n')
            && let Some(sound) = sound_bytes(self.head, tail)
        {
            if tail.len() as u64 > sound + 1 {
                return Err(damaged());
            }
            bytes.truncate(offset + usize::try_from(sound).expect("it is a part of what is in memory"));
            bytes.push(b'\n');
            return Ok(());
        }
        if !is_unfinished(tail) {
            return Err(damaged());
        }
        checker.check_end(self.head)?;
        bytes.truncate(offset);
        Ok(())
    }

    /// The newest record.
    pub(in crate::store) fn head(&self) -> Head {
        self.head
    }

    /// Appends one record to the last segment.
    pub(in crate::store) fn append(&mut self, prepared: &Prepared) -> Appended {
        let number = u32::try_from(self.segments.len()).expect("a simulation has few segments");
        let bytes = self.segments.last_mut().expect("a journal has a segment");
        let offset = bytes.len();
        let head = prepared.seal(self.head, bytes);
        let length = u32::try_from(bytes.len() - offset).expect("lines are bounded");
        self.head = head;
        Appended { position: Position { segment: number, offset: offset as u64, length }, head }
    }

    /// Begins a segment if the last one is full. The caller has synced everything.
    pub(in crate::store) fn roll(&mut self) {
        if self.segments.last().is_some_and(|bytes| bytes.len() >= self.segment_bytes_max) {
            self.begin_segment();
        }
    }

    /// The bytes as they stand.
    pub(in crate::store) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The bytes, to crash with.
    pub(in crate::store) fn into_segments(self) -> Segments {
        self.segments
    }

    /// The record at a place.
    pub(in crate::store) fn read(&self, position: Position) -> Result<Recorded, Error> {
        let damaged = |what| Error::Damaged {
            segment: segment::path_of(&PathBuf::from("simulated"), position.segment),
            line: 0,
            offset: position.offset,
            what,
        };
        let (hash, record) = codec::open_line(self.line(position)).map_err(damaged)?;
        codec::decode(hash, record).map_err(damaged)
    }

    /// Reads a record as strictly as a verification does.
    pub(in crate::store) fn read_strictly(&self, position: Position) -> Result<Recorded, String> {
        let (hash, record) = codec::open_line(self.line(position))?;
        codec::decode_strictly(codec::FORMAT, hash, record)
    }

    fn line(&self, position: Position) -> &[u8] {
        let offset = usize::try_from(position.offset).expect("it is in memory");
        let bytes = self.segments.get((position.segment as usize).wrapping_sub(1));
        bytes.and_then(|bytes| bytes.get(offset..offset + position.length as usize)).unwrap_or_default()
    }
}

/// Where the line that begins at `offset` ends: behind its line break, or where the bytes do.
fn end_of_line(bytes: &[u8], offset: usize) -> usize {
    bytes[offset..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |length| offset + length + 1)
}
