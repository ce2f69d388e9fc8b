//! The text of a journal line: `{"hash":"sha256:...","record":{...}}`.
//!
//! The hash is that of the record's bytes as they stand, so checking it needs no
//! JSON parser, and nobody can disagree about the canonical form. Records are
//! prepared in two pieces, with the chain's own fields left out between them, so
//! that only joining and hashing is left to the one thread that appends.

use std::ops::Range;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::json;
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Head;
use crate::store::model::{OutgoingMessage, RECORD_BYTES_MAX, Record, Recorded, TimerChange};
use crate::store::rows::RowChange;

/// The format of the journal that this version writes. It reads all before it, too: format 1 had no `rows`.
pub(in crate::store) const FORMAT: u64 = 2;

/// How deeply a value in a record may be nested: the strict parser counts from the line's outside.
pub(in crate::store) const VALUE_DEPTH_MAX: usize = json::DEPTH_MAX - 8;

/// The longest line: the record and its envelope.
pub(super) const LINE_BYTES_MAX: usize = RECORD_BYTES_MAX + ENVELOPE_BYTES;

const OPEN: &[u8] = b"{\"hash\":\"";
const BETWEEN: &[u8] = b"\",\"record\":";
const CLOSE: &[u8] = b"}\n";
const DIGEST_BYTES: usize = "sha256:".len() + 64;
const ENVELOPE_BYTES: usize = OPEN.len() + DIGEST_BYTES + BETWEEN.len() + CLOSE.len();

/// Room for the text of a usual record.
const TEXT_BYTES: usize = 4_096;

/// What makes a journal file recognisable.
const MAGIC: &str = "journal";

/// The first line of a segment file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    checkrein: String,
    /// The format of the whole segment.
    pub(super) format: u64,
    /// The hash of the last record of the segment before.
    pub(super) previous: Option<Digest>,
    /// The segment's own number.
    pub(super) segment: u32,
    /// The sequence number of the segment's first record.
    pub(super) sequence: u64,
}

/// Why a header line is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeaderFlaw {
    Format(u64),
    Text(String),
}

impl Header {
    pub(super) fn new(segment: u32, head: Head) -> Self {
        Self { checkrein: MAGIC.to_owned(), format: FORMAT, previous: head.hash, segment, sequence: head.count + 1 }
    }

    /// The chain's head before the segment's first record.
    pub(super) fn head(&self) -> Head {
        Head { count: self.sequence.saturating_sub(1), hash: self.previous }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut line = json::canonical(self).expect("a header holds only texts and small integers");
        line.push(b'\n');
        line
    }

    pub(super) fn decode(line: &[u8]) -> Result<Self, HeaderFlaw> {
        let text = line.strip_suffix(b"\n").ok_or_else(|| HeaderFlaw::Text("the header has no end".to_owned()))?;
        let value = json::parse(text).map_err(|error| HeaderFlaw::Text(error.to_string()))?;
        // The format comes first: a later version's header may have other fields.
        match (value.get("checkrein").and_then(Value::as_str), value.get("format").and_then(Value::as_u64)) {
            (Some(MAGIC), Some(1..=FORMAT)) => {}
            (Some(MAGIC), Some(other)) => return Err(HeaderFlaw::Format(other)),
            _ => return Err(HeaderFlaw::Text("this is no header of a journal".to_owned())),
        }
        let header: Self = json::parse_as("header", text).map_err(|error| HeaderFlaw::Text(error.to_string()))?;
        if header.encode() != line {
            return Err(HeaderFlaw::Text("the header is not in canonical form".to_owned()));
        }
        Ok(header)
    }
}

/// A record whose place in the chain is not known yet.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::store) struct Draft {
    pub at: Timestamp,
    pub cause: Option<MessageId>,
    pub decision: Value,
    pub event: Value,
    pub kind: String,
    pub messages: Vec<OutgoingMessage>,
    pub rows: Vec<RowChange>,
    pub state: Value,
    pub task: Option<TaskId>,
    pub timers: Vec<TimerChange>,
    pub version: u64,
}

/// Members of an object in canonical form; they must come in the order of their names.
struct Members {
    text: Vec<u8>,
    /// Where the piece begins that is being written.
    begin: usize,
}

impl Members {
    fn new() -> Self {
        let mut text = Vec::with_capacity(TEXT_BYTES);
        text.push(b'{');
        Self { text, begin: 1 }
    }

    /// Ends a piece: members of the chain come between it and the next. Says where it ends.
    fn cut(&mut self) -> usize {
        self.begin = self.text.len();
        self.begin
    }

    fn name(&mut self, name: &str) {
        if self.text.len() > self.begin {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
    }

    fn small<T: Serialize>(&mut self, name: &str, value: &T) -> Result<(), json::Error> {
        self.name(name);
        self.text.extend_from_slice(&json::canonical(value)?);
        Ok(())
    }

    /// A value that may be large is not copied first.
    fn large(&mut self, name: &str, value: &Value) -> Result<(), json::Error> {
        self.name(name);
        json::append_canonical(value, &mut self.text)
    }
}

/// A draft and its canonical text but for the chain's fields.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::store) struct Prepared {
    draft: Draft,
    /// The three pieces, one after the other.
    text: Vec<u8>,
    /// Where the second and the third begin.
    cuts: [usize; 2],
    /// Where the state's text lies.
    state: Range<usize>,
}

/// The canonical text of a state, within that of its record.
#[derive(Debug)]
pub(in crate::store) struct StateText {
    text: Vec<u8>,
    range: Range<usize>,
}

impl StateText {
    pub(in crate::store) fn as_bytes(&self) -> &[u8] {
        &self.text[self.range.clone()]
    }
}

impl Prepared {
    /// Does everything that does not depend on the record's place.
    pub(in crate::store) fn new(draft: Draft) -> Result<Self, json::Error> {
        let Draft { at, cause, decision, event, kind, messages, rows, state, task, timers, version } = &draft;
        let mut members = Members::new();
        members.small("at", at)?;
        members.small("cause", cause)?;
        members.large("decision", decision)?;
        members.large("event", event)?;
        members.small("kind", kind)?;
        members.small("messages", messages)?;
        let middle = members.cut();
        members.small("rows", rows)?;
        let back = members.cut();
        members.large("state", state)?;
        let state = back + "\"state\":".len()..members.text.len();
        members.small("task", task)?;
        members.small("timers", timers)?;
        members.small("version", version)?;
        let mut text = members.text;
        text.push(b'}');
        Ok(Self { text, cuts: [middle, back], state, draft })
    }

    pub(in crate::store) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// About how large the record will be.
    pub(in crate::store) fn size(&self) -> usize {
        self.text.len() + 128
    }

    /// Writes the line that follows `head` to `buffer`; returns the new head.
    pub(super) fn seal(&self, head: Head, buffer: &mut Vec<u8>) -> Head {
        let sequence = head.count + 1;
        let previous = head.hash.map_or_else(|| "null".to_owned(), |hash| format!("\"{hash}\""));
        let previous = format!(",\"previous\":{previous},");
        let number = format!(",\"sequence\":{sequence},");
        let (front, rest) = self.text.split_at(self.cuts[0]);
        let (middle, back) = rest.split_at(self.cuts[1] - self.cuts[0]);
        let pieces = [front, previous.as_bytes(), middle, number.as_bytes(), back];
        let mut hasher = checkrein_shared::digest::Hasher::new();
        pieces.iter().for_each(|piece| hasher.update(piece));
        let hash = hasher.finish();
        buffer.extend_from_slice(OPEN);
        buffer.extend_from_slice(hash.to_string().as_bytes());
        buffer.extend_from_slice(BETWEEN);
        pieces.iter().for_each(|piece| buffer.extend_from_slice(piece));
        buffer.extend_from_slice(CLOSE);
        Head { count: sequence, hash: Some(hash) }
    }

    /// Drops the values whose text is all that is needed from here on. Taking large values apart is slow, so
    /// whoever brought them does it, and not one of the threads that everybody waits for.
    pub(in crate::store) fn slim(mut self) -> Self {
        if self.draft.task.is_some() {
            (self.draft.event, self.draft.decision, self.draft.state) = (Value::Null, Value::Null, Value::Null);
        }
        self
    }

    /// The record at its place, and the text of its state; see [`Prepared::slim`] for what the record may lack.
    pub(in crate::store) fn into_recorded(self, previous: Option<Digest>, head: Head) -> (Recorded, StateText) {
        let text = StateText { text: self.text, range: self.state };
        let Draft { at, cause, decision, event, kind, messages, rows, state, task, timers, version } = self.draft;
        let sequence = head.count;
        let record = Record {
            at,
            cause,
            decision,
            event,
            kind,
            messages,
            previous,
            rows,
            sequence,
            state,
            task,
            timers,
            version,
        };
        (Recorded { hash: head.hash.expect("a sealed record has a hash"), record }, text)
    }
}

/// Takes a line apart and checks the hash. The bytes are the record's.
pub(super) fn open_line(line: &[u8]) -> Result<(Digest, &[u8]), String> {
    let (hash, record) = parts(line)?;
    match Digest::of(record) {
        found if found == hash => Ok((hash, record)),
        found => Err(format!("the record's bytes have the hash {found}, the line says {hash}")),
    }
}

/// Takes a line apart without checking the hash: that was done when it was scanned.
pub(super) fn parts(line: &[u8]) -> Result<(Digest, &[u8]), String> {
    let record = line
        .strip_prefix(OPEN)
        .and_then(|rest| rest.split_at_checked(DIGEST_BYTES))
        .and_then(|(hash, rest)| Some((hash, rest.strip_prefix(BETWEEN)?.strip_suffix(CLOSE)?)));
    let Some((hash, record)) = record else {
        return Err("the line is not `{\"hash\":...,\"record\":...}`".to_owned());
    };
    let hash = std::str::from_utf8(hash).ok().and_then(|text| text.parse::<Digest>().ok());
    hash.map(|hash| (hash, record)).ok_or_else(|| "the hash is not a digest".to_owned())
}

/// The fields that tie a record to the one before.
#[derive(Debug, Deserialize)]
pub(super) struct Link {
    pub(super) previous: Option<Digest>,
    pub(super) sequence: u64,
}

/// Reads only the chain's fields of a record whose hash was checked.
pub(super) fn link(record: &[u8]) -> Result<Link, String> {
    serde_json::from_slice(record).map_err(|error| error.to_string())
}

/// Reads a record whose hash was checked.
pub(super) fn decode(hash: Digest, record: &[u8]) -> Result<Recorded, String> {
    let record = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    Ok(Recorded { hash, record })
}

/// A record of which large values are only text.
#[derive(Deserialize)]
struct SlimRecord<'a> {
    at: Timestamp,
    cause: Option<MessageId>,
    #[serde(borrow)]
    event: &'a RawValue,
    kind: String,
    messages: Vec<OutgoingMessage>,
    previous: Option<Digest>,
    #[serde(default)]
    rows: Vec<RowChange>,
    sequence: u64,
    #[serde(borrow)]
    state: &'a RawValue,
    task: Option<TaskId>,
    timers: Vec<TimerChange>,
    version: u64,
}

/// Reads a record whose hash was checked, without decision and state, and of a task's also without the event; beside it
/// the text of the state. Taking large values apart is what reading a journal spends most of its time with.
pub(super) fn decode_slim(hash: Digest, record: &[u8]) -> Result<(Recorded, Vec<u8>), String> {
    let slim: SlimRecord<'_> = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    let event = match slim.task {
        Some(_) => Value::Null,
        None => serde_json::from_str(slim.event.get()).map_err(|error| error.to_string())?,
    };
    let state_text = slim.state.get().as_bytes().to_vec();
    let SlimRecord { at, cause, kind, messages, previous, rows, sequence, task, timers, version, .. } = slim;
    let (decision, state) = (Value::Null, Value::Null);
    let record =
        Record { at, cause, decision, event, kind, messages, previous, rows, sequence, state, task, timers, version };
    Ok((Recorded { hash, record }, state_text))
}

/// Reads a record as strictly as can be: also its canonical form in the segment's format must be the same bytes.
pub(super) fn decode_strictly(format: u64, hash: Digest, record: &[u8]) -> Result<Recorded, String> {
    let parsed: Record = json::parse_as("record", record).map_err(|error| error.to_string())?;
    let mut value = serde_json::to_value(&parsed).map_err(|error| error.to_string())?;
    if format == 1 {
        value.as_object_mut().and_then(|fields| fields.remove("rows"));
    }
    match json::canonical(&value) {
        Ok(canonical) if canonical == record => Ok(Recorded { hash, record: parsed }),
        _ => Err(format!("the record is not in the canonical form of format {format}")),
    }
}

/// How deeply a value is nested; stops counting at `limit`.
pub(in crate::store) fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| deeper_than(item, limit - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
