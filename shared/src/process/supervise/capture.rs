//! Copies a command's output into a file up to a cap: the first half of the cap and the last half.
//!
//! The bytes are kept exactly as they came. What falls between is counted, and the offset of the gap is told; nothing
//! is written into the file to mark it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::process::finished::Captured;

const CHUNK_BYTES: usize = 64 << 10;

/// The largest half that is held in memory; a larger cap only makes the first part longer.
const TAIL_BYTES_MAX: u64 = 8 << 20;

struct Kept {
    file: File,
    head_bytes: u64,
    head_left: u64,
    tail: VecDeque<u8>,
    tail_bytes_max: usize,
    dropped: u64,
    error: Option<io::Error>,
    is_closed: bool,
}

impl Kept {
    fn new(file: File, bytes_max: u64) -> Self {
        let tail_bytes_max = (bytes_max / 2).min(TAIL_BYTES_MAX);
        Self {
            file,
            head_bytes: 0,
            head_left: bytes_max - tail_bytes_max,
            tail: VecDeque::new(),
            tail_bytes_max: usize::try_from(tail_bytes_max).unwrap_or(usize::MAX),
            dropped: 0,
            error: None,
            is_closed: false,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let head = usize::try_from(self.head_left).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(head);
        self.write(head);
        self.head_bytes += head.len() as u64;
        self.head_left -= head.len() as u64;
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.tail_bytes_max);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.file.write_all(bytes).err();
        }
    }

    fn close(&mut self, still_open: bool) -> Captured {
        self.is_closed = true;
        let tail = std::mem::take(&mut self.tail);
        let (first, second) = tail.as_slices();
        self.write(first);
        self.write(second);
        Captured {
            bytes_kept: self.head_bytes + tail.len() as u64,
            bytes_dropped: self.dropped,
            gap_at: (self.dropped > 0).then_some(self.head_bytes),
            still_open,
            write_error: self.error.as_ref().map(ToString::to_string),
        }
    }
}

/// A stream that is being captured.
pub(super) struct Capture {
    kept: Arc<Mutex<Kept>>,
    at_end: mpsc::Receiver<()>,
}

impl Capture {
    /// Starts to copy, on a thread of its own.
    pub(super) fn start((mut reader, file): (PipeReader, File), bytes_max: u64) -> Self {
        let kept = Arc::new(Mutex::new(Kept::new(file, bytes_max)));
        let (ended, at_end) = mpsc::channel();
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                match reader.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(length) => {
                        let mut kept = lock(&shared);
                        if kept.is_closed {
                            return;
                        }
                        kept.add(&chunk[..length]);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            // The receiver is gone where the supervisor did not wait for the end.
            let _ = ended.send(());
        });
        Self { kept, at_end }
    }

    /// Waits for the end of the stream, at most `patience`, and completes the file.
    ///
    /// Everything that we could kill is dead by now, so the end comes at once, unless the command gave its end of the
    /// stream to a process that is not its own.
    pub(super) fn finish(self, patience: Duration) -> Captured {
        let still_open = self.at_end.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout);
        lock(&self.kept).close(still_open)
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_and_the_last_bytes_are_kept_and_the_rest_is_counted(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            cap in 0..100_u64,
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut kept = Kept::new(file.try_clone().unwrap(), cap);
            chunks.iter().for_each(|chunk| kept.add(chunk));
            let captured = kept.close(false);

            let all = chunks.concat();
            let mut content = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut content).unwrap();
            prop_assert_eq!(content.len() as u64, captured.bytes_kept);
            prop_assert_eq!(captured.bytes_kept, cap.min(all.len() as u64));
            prop_assert_eq!(captured.bytes_kept + captured.bytes_dropped, all.len() as u64);
            let gap = captured.gap_at.map_or(content.len(), |gap| usize::try_from(gap).unwrap());
            prop_assert_eq!(captured.gap_at.is_some(), captured.bytes_dropped > 0);
            prop_assert!(all.starts_with(&content[..gap]) && all.ends_with(&content[gap..]));
        }
    }
}
