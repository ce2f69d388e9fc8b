use checkrein_shared::digest::Digest;
use checkrein_shared::time::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::store::index::Index;

const POSITION: Position = Position { segment: 1, offset: 80, length: 300 };

fn index() -> (Index, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Index::open(folder.path(), 1 << 20).unwrap(), folder)
}

fn record(sequence: u64, version: u64, cause: Option<&str>) -> Recorded {
    let record = Record {
        at: Timestamp::from_millis(0),
        cause: cause.map(|cause| cause.parse().unwrap()),
        decision: Value::Null,
        event: Value::Null,
        kind: "tested".to_owned(),
        messages: Vec::new(),
        previous: (sequence > 1).then(|| Digest::of((sequence - 1).to_be_bytes())),
        rows: Vec::new(),
        sequence,
        state: json!({ "version": version }),
        task: Some("t-1".parse().unwrap()),
        timers: Vec::new(),
        version,
    };
    Recorded { hash: Digest::of(sequence.to_be_bytes()), record }
}

fn project(index: &Index, records: &[Recorded]) -> Result<(), IndexError> {
    let first = &records[0].record;
    let mut projection = Projection::from_front(index, Head { count: first.sequence - 1, hash: first.previous });
    records.iter().try_for_each(|recorded| projection.add(recorded, POSITION))?;
    projection.finish()
}

#[test]
fn an_incoming_message_is_forgotten_when_it_leaves_the_window_unless_it_came_again() {
    let (index, _folder) = index();
    let seen = |id: &str| index.get(&keys::seen(&id.parse().unwrap())).unwrap().is_some();
    project(&index, &[record(1, 1, Some("m-a")), record(2, 2, Some("m-b")), record(3, 3, None)]).unwrap();
    assert!(seen("m-a") && seen("m-b"));
    let late = SEEN_RECORDS + 1;
    project(&index, &[record(late, 4, Some("m-a")), record(late + 1, 5, None), record(late + 2, 6, None)]).unwrap();
    assert!(seen("m-a") && !seen("m-b"));
    project(&index, &[record(late + SEEN_RECORDS, 7, None)]).unwrap();
    assert!(!seen("m-a"));
}

#[test]
fn a_record_that_does_not_follow_is_refused() {
    let (index, _folder) = index();
    project(&index, &[record(1, 1, None)]).unwrap();
    let mut projection = Projection::new(&index);
    assert!(matches!(projection.add(&record(3, 2, None), POSITION), Err(IndexError::Damaged(_))));
    // Nor may an event be missing within its task.
    project(&index, &[record(2, 5, None)]).unwrap_err();
}

#[test]
fn the_text_of_a_state_is_kept_as_it_stands_and_only_where_it_fits() {
    let (index, _folder) = index();
    let mut projection = Projection::new(&index);
    projection.add_with(&record(1, 1, None), POSITION, br#"{"as":"it stands"}"#).unwrap();
    projection.finish().unwrap();
    let key = keys::task(&"t-1".parse().unwrap());
    let pointer = Pointer::decode(&index.get(&key).unwrap().unwrap()).unwrap();
    assert_eq!((pointer.number, pointer.inline.as_deref()), (1, Some(&br#"{"as":"it stands"}"#[..])));
    let mut projection = Projection::new(&index);
    projection.add_with(&record(2, 2, None), POSITION, &vec![b' '; 5_000]).unwrap();
    projection.finish().unwrap();
    assert_eq!(Pointer::decode(&index.get(&key).unwrap().unwrap()).unwrap().inline, None);
}
