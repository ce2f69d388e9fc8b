//! Appending batches: one write and one `fdatasync` for all records of a batch.
//!
//! Either the whole batch is on the disk when this returns, or none of it counts:
//! after a failure the segment is cut back to what was acknowledged before, and
//! nothing is appended until that has worked. There is one writer for a journal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::codec::Prepared;
use super::{Head, Position, segment};

/// What the writer needs of a segment file; a seam for tests that break the disk.
pub(in crate::store) trait SegmentFile: Send {
    /// Writes all bytes at an offset.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the bytes survive a power cut.
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts the file, durably.
    fn truncate(&self, length: u64) -> io::Result<()>;
}

impl SegmentFile for File {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.sync_all()
    }
}

/// A buffer beyond this is given back after use.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Appends to a journal.
pub(in crate::store) struct Writer {
    folder: PathBuf,
    segment: u32,
    file: Box<dyn SegmentFile>,
    /// How long the segment is, counting only what was acknowledged.
    length: u64,
    head: Head,
    segment_bytes_max: u64,
    /// A failed append may have left bytes behind `length`.
    dirty: bool,
    /// The next append begins a segment, however small the last one is.
    begins: bool,
    /// Whether a segment was born since the caller last asked.
    born: bool,
    /// Room for a batch, kept because getting it anew each time is slow.
    buffer: Vec<u8>,
}

/// Where one record of a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Appended {
    pub(in crate::store) position: Position,
    /// The chain's head with this record.
    pub(in crate::store) head: Head,
}

impl Writer {
    pub(super) fn new(
        folder: PathBuf,
        segment: u32,
        file: File,
        length: u64,
        head: Head,
        segment_bytes_max: u64,
    ) -> Self {
        Self {
            folder,
            segment,
            file: Box::new(file),
            length,
            head,
            segment_bytes_max,
            dirty: false,
            begins: false,
            born: false,
            buffer: Vec::new(),
        }
    }

    /// Has the next append begin a segment: the last one has an older format.
    pub(super) fn begin_segment(&mut self) {
        self.begins = true;
    }

    /// The newest record that is on the disk.
    pub(in crate::store) fn head(&self) -> Head {
        self.head
    }

    /// Whether a segment was born since this was last asked.
    pub(in crate::store) fn take_born(&mut self) -> bool {
        std::mem::take(&mut self.born)
    }

    /// Puts a whole batch on the disk, in order.
    pub(in crate::store) fn append(&mut self, batch: &[&Prepared]) -> io::Result<Vec<Appended>> {
        if self.dirty {
            self.cut_back()?;
        }
        if self.begins || self.length >= self.segment_bytes_max {
            self.next_segment()?;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve(batch.iter().map(|prepared| prepared.size() + 256).sum());
        let mut appended = Vec::with_capacity(batch.len());
        let mut head = self.head;
        for prepared in batch {
            let start = buffer.len();
            head = prepared.seal(head, &mut buffer);
            let length = u32::try_from(buffer.len() - start).map_err(io::Error::other)?;
            let position = Position { segment: self.segment, offset: self.length + start as u64, length };
            appended.push(Appended { position, head });
        }
        let written = self.file.write_all_at(&buffer, self.length).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.dirty = true;
            // Best effort now, so that a reader or a crash finds a clean end; else before the next append.
            if let Err(second) = self.cut_back() {
                tracing::error!(error = %second, "can't cut the journal back after a failed append yet");
            }
            return Err(error);
        }
        self.length += buffer.len() as u64;
        self.head = head;
        if buffer.capacity() <= BUFFER_BYTES_KEPT {
            self.buffer = buffer;
        }
        Ok(appended)
    }

    /// Removes what a failed append left. A failed sync leaves it open what is on
    /// the disk, therefore nothing of the batch is kept and all of it is written anew.
    fn cut_back(&mut self) -> io::Result<()> {
        self.file.truncate(self.length)?;
        self.dirty = false;
        Ok(())
    }

    fn next_segment(&mut self) -> io::Result<()> {
        let next = self.segment.checked_add(1).ok_or_else(|| io::Error::other("the journal has too many segments"))?;
        let (file, length) = segment::create(&self.folder, next, self.head)?;
        self.segment = next;
        self.file = Box::new(file);
        self.length = length;
        self.begins = false;
        self.born = true;
        Ok(())
    }

    /// Wraps the segment file, to break it in tests.
    #[cfg(test)]
    pub(in crate::store) fn wrap_file(&mut self, wrap: impl FnOnce(Box<dyn SegmentFile>) -> Box<dyn SegmentFile>) {
        let taken = std::mem::replace(&mut self.file, Box::new(tests::Nowhere));
        self.file = wrap(taken);
    }
}

#[cfg(test)]
pub(super) mod tests;
