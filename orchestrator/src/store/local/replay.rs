//! Bringing the index up to the journal, after a crash or from nothing.
//!
//! One thread reads and checks the journal, the other one applies what it found:
//! both have much to do. Repairs nothing.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::store::error::Error;
use crate::store::index::{Index, IndexError};
use crate::store::journal::{self, Front, Head, Position, Scan};
use crate::store::model::Recorded;
use crate::store::projection::Projection;

/// How large the changes grow before they are written: what changes again and again is written once for all of them.
const CHANGES_BYTES: usize = 32 << 20;

/// How many records are handed over at once, and how many such chunks may wait.
const CHUNK: usize = 128;
const CHUNKS_WAITING: usize = 4;

/// A record without what the index does not need, and the text of its state.
type Read = (Recorded, Vec<u8>, Position);

/// Applies what the index does not hold yet, up to `head`: what follows may be half written.
pub(super) fn replay(index: &Index, journal_folder: &Path, (front, head): (Front, Head)) -> Result<(), Error> {
    let known = index.head();
    if known == head {
        return Ok(());
    }
    if known.count > head.count {
        let what = format!("it holds {} records, the journal only {}", known.count, head.count);
        return Err(Error::Index(IndexError::Damaged(what)));
    }
    tracing::info!(from = known.count + 1, to = head.count, "the index is behind the journal; replaying");
    let (sender, receiver) = sync_channel(CHUNKS_WAITING);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || read(journal_folder, known.count, head.count, &sender));
        let applied = apply(index, front, receiver);
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Where something can't be applied nobody reads on, so that is the reason.
        applied.map_err(Error::Index).and(read)
    })
}

/// Reads the records after number `known`, up to number `last`.
fn read(folder: &Path, known: u64, last: u64, sender: &SyncSender<Vec<Read>>) -> Result<(), Error> {
    let segments = journal::list(folder)?;
    let mut first = segments.len();
    while first > 1 && Scan::open(folder, segments[first - 1], None)?.head().count > known {
        first -= 1;
    }
    let (mut before, mut chunk) = (None, Vec::with_capacity(CHUNK));
    for number in &segments[first.saturating_sub(1)..] {
        let mut scan = Scan::open(folder, *number, before)?;
        while scan.head().count < last {
            let Some(entry) = scan.next_sound()? else { break };
            if entry.head.count <= known {
                continue;
            }
            let (recorded, state) = entry.decode_slim().map_err(|what| Error::Damaged {
                segment: scan.path().to_path_buf(),
                line: scan.line(),
                offset: entry.position.offset,
                what,
            })?;
            chunk.push((recorded, state, entry.position));
            if chunk.len() == CHUNK && sender.send(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK))).is_err() {
                return Ok(());
            }
        }
        before = Some(scan.head());
    }
    // Nobody takes it where something could not be applied.
    let _gone = sender.send(chunk);
    Ok(())
}

/// Takes the receiver along: where it fails, who sends is to notice.
fn apply(index: &Index, front: Front, receiver: Receiver<Vec<Read>>) -> Result<(), IndexError> {
    let mut projection =
        if index.head().count == 0 { Projection::from_front(index, front.head) } else { Projection::new(index) };
    for chunk in receiver {
        for (recorded, state, position) in chunk {
            projection.add_with(&recorded, position, &state)?;
        }
        if projection.bytes() >= CHANGES_BYTES {
            projection.finish()?;
            projection = Projection::new(index);
        }
    }
    projection.finish()
}
