use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::super::recovery::open;
use super::super::{Draft, HeadFile, Scan, list};
use super::*;

/// Stands in while a test wraps the real file.
pub(super) struct Nowhere;

impl SegmentFile for Nowhere {
    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::Error::other("nowhere"))
    }
}

/// What is wrong with the disk at the moment.
#[derive(Debug, Default)]
pub(in crate::store) struct Faults {
    /// A write stops after this many bytes, plus one; 0 is no fault.
    pub(in crate::store) write_stops_after: AtomicU64,
    pub(in crate::store) sync_fails: AtomicBool,
    pub(in crate::store) truncate_fails: AtomicBool,
}

/// A real file on a disk with faults.
pub(in crate::store) struct Faulty {
    pub(in crate::store) file: Box<dyn SegmentFile>,
    pub(in crate::store) faults: Arc<Faults>,
}

impl SegmentFile for Faulty {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.faults.write_stops_after.load(Ordering::SeqCst) {
            0 => self.file.write_all_at(bytes, offset),
            stop => {
                let stop = usize::try_from(stop - 1).unwrap().min(bytes.len());
                self.file.write_all_at(&bytes[..stop], offset)?;
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.faults.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the device failed"));
        }
        self.file.sync_data()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if self.faults.truncate_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the device failed"));
        }
        self.file.truncate(length)
    }
}

fn prepared(number: u64) -> Prepared {
    let draft = Draft {
        at: checkrein_shared::time::Timestamp::from_millis(0),
        cause: None,
        decision: Value::Null,
        event: json!({ "number": number, "text": "x".repeat(100) }),
        kind: "tested".to_owned(),
        messages: Vec::new(),
        rows: Vec::new(),
        state: Value::Null,
        task: Some("t-1".parse().unwrap()),
        timers: Vec::new(),
        version: number,
    };
    Prepared::new(draft).unwrap()
}

fn append(writer: &mut Writer, numbers: std::ops::RangeInclusive<u64>) -> io::Result<Vec<Appended>> {
    let batch: Vec<Prepared> = numbers.map(prepared).collect();
    writer.append(&batch.iter().collect::<Vec<_>>())
}

fn numbers(folder: &std::path::Path) -> Vec<u64> {
    let mut found = Vec::new();
    for segment in list(folder).unwrap() {
        let mut scan = Scan::open(folder, segment, None).unwrap();
        while let Some(entry) = scan.next_sound().unwrap() {
            found.push(entry.decode_strictly().unwrap().record.version);
        }
    }
    found
}

#[test]
fn a_batch_that_did_not_reach_the_disk_leaves_nothing_and_the_next_one_does() {
    for stop in [1, 2, 60, 150, 700, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open(folder.path(), 1 << 20, None, false).unwrap().writer;
        let faults = Arc::new(Faults::default());
        let for_file = Arc::clone(&faults);
        writer.wrap_file(|file| Box::new(Faulty { file, faults: for_file }));
        append(&mut writer, 1..=2).unwrap();
        let before = writer.head();

        faults.write_stops_after.store(stop, Ordering::SeqCst);
        assert_eq!(append(&mut writer, 3..=5).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((writer.head(), numbers(folder.path())), (before, vec![1, 2]));
        assert!(append(&mut writer, 3..=3).is_err(), "still full");

        faults.write_stops_after.store(0, Ordering::SeqCst);
        append(&mut writer, 3..=4).unwrap();
        assert_eq!(numbers(folder.path()), [1, 2, 3, 4]);
    }
}

#[test]
fn after_a_failed_sync_nothing_is_appended_until_the_rest_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path(), 1 << 20, None, false).unwrap().writer;
    let faults = Arc::new(Faults::default());
    let for_file = Arc::clone(&faults);
    writer.wrap_file(|file| Box::new(Faulty { file, faults: for_file }));
    append(&mut writer, 1..=1).unwrap();
    faults.sync_fails.store(true, Ordering::SeqCst);
    faults.truncate_fails.store(true, Ordering::SeqCst);
    assert!(append(&mut writer, 2..=3).is_err());
    faults.sync_fails.store(false, Ordering::SeqCst);
    assert!(append(&mut writer, 2..=2).is_err(), "the rest of the failed batch is still there");
    faults.truncate_fails.store(false, Ordering::SeqCst);
    let appended = append(&mut writer, 2..=2).unwrap();
    assert_eq!(numbers(folder.path()), [1, 2]);
    assert_eq!(appended[0].head, writer.head());
    drop(writer);
    let opened = open(folder.path(), 1 << 20, None, false).unwrap();
    assert_eq!((opened.writer.head(), opened.torn), (appended[0].head, None));
}

#[test]
fn a_segment_that_is_full_is_followed_by_the_next_between_batches() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path(), 1_000, None, false).unwrap().writer;
    let mut births = 0;
    for batch in 0..10 {
        append(&mut writer, batch * 3 + 1..=batch * 3 + 3).unwrap();
        births += u32::from(writer.take_born());
    }
    assert_eq!(list(folder.path()).unwrap(), (1..=births + 1).collect::<Vec<u32>>());
    assert!(births > 3);
    assert_eq!(numbers(folder.path()), (1..=30).collect::<Vec<u64>>());
    HeadFile::new(folder.path()).write(writer.head()).unwrap();
    let head = writer.head();
    drop(writer);
    assert_eq!(open(folder.path(), 1_000, None, false).unwrap().writer.head(), head);
}

#[test]
fn a_segment_whose_birth_was_interrupted_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path(), 1_000, None, false).unwrap().writer;
    append(&mut writer, 1..=2).unwrap();
    drop(writer);
    let unborn = folder.path().join("00000002.jsonl.tmp");
    std::fs::write(&unborn, "{\"check").unwrap();
    let mut writer = open(folder.path(), 1_000, None, false).unwrap().writer;
    assert!(!unborn.exists());
    append(&mut writer, 3..=9).unwrap();
    append(&mut writer, 10..=10).unwrap();
    assert_eq!(numbers(folder.path()), (1..=10).collect::<Vec<u64>>());
}
