use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::{Draft, Prepared, list};
use super::*;

const SEGMENT: u64 = 900;

/// A journal of a few records in a few segments; `clean` writes the head file at the end.
fn journal(records: u64, clean: bool) -> (tempfile::TempDir, Head) {
    let folder = memory_folder();
    let mut writer = super::open(folder.path(), SEGMENT, None, false).unwrap().writer;
    for number in 1..=records {
        append(&mut writer, number);
    }
    let head = writer.head();
    if clean {
        HeadFile::new(folder.path()).write(head).unwrap();
    }
    (folder, head)
}

fn append(writer: &mut Writer, number: u64) {
    let draft = Draft {
        at: checkrein_shared::time::Timestamp::from_millis(0),
        cause: None,
        decision: Value::Null,
        event: json!({ "number": number }),
        kind: "tested".to_owned(),
        messages: Vec::new(),
        rows: Vec::new(),
        state: Value::Null,
        task: Some("t-1".parse().unwrap()),
        timers: Vec::new(),
        version: number,
    };
    writer.append(&[&Prepared::new(draft).unwrap()]).unwrap();
}

fn reopen(folder: &Path) -> Result<Opened, Error> {
    super::open(folder, SEGMENT, None, false)
}

/// The text of all segments, one after the other: what the journal says.
fn text(folder: &Path) -> Vec<u8> {
    let read = |number: &u32| fs::read(segment::path_of(folder, *number)).unwrap();
    list(folder).unwrap().iter().flat_map(read).collect()
}

/// A folder in memory where there is such a thing: thousands of cuts need no disk.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Replaces a file. A new file, because overwriting one makes some file systems sync it.
fn put(path: &Path, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
    let _missing = fs::remove_file(path);
    fs::write(path, bytes)
}

fn last_segment(folder: &Path) -> PathBuf {
    segment::path_of(folder, *list(folder).unwrap().last().unwrap())
}

#[test]
fn a_tail_cut_at_any_byte_is_repaired_once_and_the_next_record_is_not_lost() {
    let (original, _) = journal(5, false);
    let last = last_segment(original.path());
    let whole = fs::read(&last).unwrap();
    let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for cut in header..whole.len() {
        put(&last, &whole[..cut]).unwrap();
        let lines = whole[..cut].iter().filter(|b| **b == b'\n').count();
        let opened = reopen(original.path()).unwrap();
        let at_line_end = whole[cut - 1] == b'\n';
        let torn = opened.torn;
        match &torn {
            None => assert!(at_line_end, "cut at {cut}"),
            Some(TornTail { bytes: 0, kept: None, .. }) => assert_eq!(whole[cut], b'\n', "cut at {cut}"),
            Some(TornTail { bytes, kept, offset, .. }) => {
                let kept = fs::read(kept.as_ref().unwrap()).unwrap();
                assert_eq!((&kept[..], *bytes), (&whole[*offset as usize..cut], kept.len() as u64));
            }
        }
        let completed = torn.as_ref().is_some_and(|torn| torn.bytes == 0);
        let head = opened.writer.head();
        let mut writer = opened.writer;
        append(&mut writer, head.count + 1);
        drop(writer);
        let again = reopen(original.path()).unwrap();
        assert_eq!((again.writer.head().count, again.torn), (head.count + 1, None), "cut at {cut}");
        // Only the record that was cut into is gone.
        let kept = whole.split_inclusive(|b| *b == b'\n').take(lines + usize::from(completed));
        let kept: Vec<u8> = kept.flatten().copied().collect();
        assert!(fs::read(&last).unwrap().starts_with(&kept), "cut at {cut}");
    }
}

#[test]
fn with_a_head_file_no_cut_goes_unnoticed() {
    let (original, head) = journal(7, true);
    let before = text(original.path());
    for number in list(original.path()).unwrap() {
        let path = segment::path_of(original.path(), number);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            put(&path, &whole[..cut]).unwrap();
            match reopen(original.path()) {
                Err(error) => {
                    assert!(error.is_integrity(), "{error}");
                    assert_eq!(fs::read(&path).unwrap().len(), cut, "nothing more is cut off");
                }
                Ok(opened) => {
                    assert_eq!(opened.writer.head(), head);
                    assert!(text(original.path()) == before, "segment {number} cut at {cut}");
                }
            }
        }
        put(&path, &whole).unwrap();
    }
}

#[test]
fn no_flipped_byte_loses_a_record_with_or_without_a_head_file() {
    for clean in [true, false] {
        let (original, head) = journal(5, clean);
        let before = text(original.path());
        let mut detected = 0;
        for number in list(original.path()).unwrap() {
            let path = segment::path_of(original.path(), number);
            let whole = fs::read(&path).unwrap();
            for index in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[index] ^= [0x01, 0x20, 0xff][index % 3];
                put(&path, &flipped).unwrap();
                match reopen(original.path()) {
                    Err(error) => {
                        assert!(error.is_integrity() || matches!(error, Error::UnknownFormat { .. }), "{error}");
                        detected += 1;
                    }
                    // Repaired, or in a segment that opening does not read: then verification finds it.
                    Ok(opened) => {
                        assert_eq!(opened.writer.head(), head, "segment {number}, byte {index}");
                        drop(opened);
                        let repaired = text(original.path()) == before;
                        assert!(repaired || scan_all(original.path()).is_err(), "segment {number}, byte {index}");
                    }
                }
            }
            put(&path, &whole).unwrap();
        }
        assert!(detected > before.len() / 2, "most flips are seen at once");
    }
}

fn scan_all(folder: &Path) -> Result<Head, Error> {
    let mut head = Head::default();
    for number in list(folder)? {
        let mut scan = Scan::open(folder, number, Some(head))?;
        while scan.next_sound()?.is_some() {}
        head = scan.head();
    }
    Ok(head)
}

#[test]
fn lines_that_are_missing_doubled_or_exchanged_are_damage() {
    let (original, _) = journal(3, false);
    let path = last_segment(original.path());
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    assert!(lines.len() >= 3, "a header and two records");
    let last = lines.len() - 1;
    let mut without = lines.clone();
    without.remove(last - 1);
    let mut doubled = lines.clone();
    doubled.insert(last, lines[last]);
    let mut repeated = lines.clone();
    repeated.push(lines[last]);
    let mut exchanged = lines.clone();
    exchanged.swap(last - 1, last);
    let mut foreign = lines.clone();
    foreign.push(b"{}\n");
    for (name, changed) in [
        ("without", without),
        ("doubled", doubled),
        ("repeated", repeated),
        ("exchanged", exchanged),
        ("foreign", foreign),
    ] {
        put(&path, changed.concat()).unwrap();
        let error = reopen(original.path()).err();
        let Some(Error::Damaged { segment, line, offset, .. }) = error else { panic!("{name}: {error:?}") };
        assert_eq!(segment, path, "{name}");
        assert_eq!(offset, changed.iter().take(line as usize - 1).map(|line| line.len() as u64).sum::<u64>(), "{name}");
        assert_eq!(fs::read(&path).unwrap(), changed.concat(), "{name}: nothing is changed");
    }
}

#[test]
fn holes_and_rubbish_without_a_line_end_are_cut_off_but_not_below_what_a_witness_knows() {
    let (original, head) = journal(3, false);
    let path = last_segment(original.path());
    let whole = fs::read(&path).unwrap();
    let hole = [&[0; 40][..], b"}\n"].concat();
    for tail in [&b"{\"hash\":\"sha256:"[..], &[0; 5_000], b"\xff\xfe", &hole] {
        put(&path, [&whole[..], tail].concat()).unwrap();
        let opened = reopen(original.path()).unwrap();
        assert_eq!(opened.writer.head(), head);
        assert_eq!(fs::read(opened.torn.unwrap().kept.unwrap()).unwrap(), tail);
        assert_eq!(fs::read(&path).unwrap(), whole);

        let known = Head { count: head.count + 1, hash: head.hash };
        put(&path, [&whole[..], tail].concat()).unwrap();
        let error = super::open(original.path(), SEGMENT, Some(known), true).err();
        assert!(matches!(error, Some(Error::LostAcknowledged { witness: "index", .. })), "{error:?}");
        assert_eq!(fs::read(&path).unwrap().len(), whole.len() + tail.len());
    }
}

#[test]
fn a_missing_segment_is_named_and_never_a_first_run() {
    let (original, head) = journal(9, true);
    let count = list(original.path()).unwrap().len() as u32;
    assert!(count >= 3);
    for number in 1..=count {
        let path = segment::path_of(original.path(), number);
        let away = path.with_extension("away");
        fs::rename(&path, &away).unwrap();
        let error = reopen(original.path()).err();
        match error {
            Some(Error::MissingSegment(missing)) => assert_eq!(missing, path),
            Some(Error::LostAcknowledged { recorded, .. }) => assert_eq!((number, recorded), (count, head.count)),
            other => panic!("segment {number}: {other:?}"),
        }
        fs::rename(&away, &path).unwrap();
    }
    for number in 1..=count {
        fs::remove_file(segment::path_of(original.path(), number)).unwrap();
    }
    assert!(matches!(reopen(original.path()).err(), Some(Error::LostAcknowledged { found: 0, .. })));
    fs::remove_file(original.path().join("HEAD")).unwrap();
    let with_index = super::open(original.path(), SEGMENT, None, true).err();
    assert!(matches!(with_index, Some(Error::MissingSegment(_))), "{with_index:?}");
}

#[test]
fn a_head_file_that_is_damaged_is_an_error_and_a_missing_one_is_written_anew_where_the_index_remembers() {
    let (original, head) = journal(4, true);
    let path = original.path().join("HEAD");
    let whole = fs::read(&path).unwrap();
    for index in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[index] ^= 0x01;
        put(&path, &flipped).unwrap();
        match reopen(original.path()) {
            Err(error) => assert!(error.is_integrity() || matches!(error, Error::UnknownFormat { .. }), "{error}"),
            Ok(opened) => assert_eq!(opened.writer.head(), head),
        }
        put(&path, &whole[..index]).unwrap();
        assert!(reopen(original.path()).is_err_and(|error| error.is_integrity()) || index + 1 == whole.len());
    }
    fs::remove_file(&path).unwrap();
    let opened = super::open(original.path(), SEGMENT, Some(head), true).unwrap();
    assert!(opened.writer.head() == head && opened.head_file_was_missing);
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert!(!super::open(original.path(), SEGMENT, Some(head), true).unwrap().head_file_was_missing);
}

#[test]
fn where_nobody_remembers_how_long_the_journal_was_it_is_not_taken_as_it_stands() {
    let (original, _) = journal(4, true);
    fs::remove_file(original.path().join("HEAD")).unwrap();
    let last = last_segment(original.path());
    // Cut at the end of a line, or not at all: both look the same.
    for cut in [None, Some(1)] {
        let lines = fs::read(&last).unwrap();
        let kept = lines.split_inclusive(|b| *b == b'\n').count() - cut.unwrap_or(0);
        put(&last, lines.split_inclusive(|b| *b == b'\n').take(kept).collect::<Vec<_>>().concat()).unwrap();
        let before = text(original.path());
        for had_index in [false, true] {
            let error = super::open(original.path(), SEGMENT, None, had_index).err();
            assert!(matches!(&error, Some(error @ Error::Unwitnessed { .. }) if error.is_integrity()), "{error:?}");
        }
        assert_eq!(text(original.path()), before);
        assert!(!original.path().join("HEAD").exists());
    }
}

#[test]
fn a_crash_in_the_first_moment_leaves_a_journal_that_opens() {
    let folder = memory_folder();
    let path = segment::path_of(folder.path(), 1);
    drop(reopen(folder.path()).unwrap());
    fs::remove_file(folder.path().join("HEAD")).unwrap();
    let opened = reopen(folder.path()).unwrap();
    assert_eq!((opened.writer.head().count, opened.head_file_was_missing), (0, false));
    assert!(folder.path().join("HEAD").exists());
    drop(opened);
    // The segment was not even born yet.
    fs::remove_file(folder.path().join("HEAD")).unwrap();
    fs::rename(&path, path.with_extension("jsonl.tmp")).unwrap();
    assert_eq!(reopen(folder.path()).unwrap().writer.head().count, 0);
    assert!(!path.with_extension("jsonl.tmp").exists());
}

#[test]
fn a_journal_of_a_later_format_is_refused_with_its_number() {
    let (original, _) = journal(1, false);
    let path = last_segment(original.path());
    let whole = String::from_utf8(fs::read(&path).unwrap()).unwrap();
    put(&path, whole.replacen("\"format\":2", "\"format\":3", 1)).unwrap();
    let error = reopen(original.path()).err().unwrap();
    assert!(matches!(error, Error::UnknownFormat { found: 3, supported: 2, .. }), "{error}");
    assert!(!error.is_integrity());
}
