//! Finds secrets in bytes, and replaces them.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::bytes::Regex;

use super::known::Known;

/// One compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) id: String,
    pub(super) regex: Regex,
    pub(super) plausible: fn(&[u8]) -> bool,
    /// Whether it is applied to one line at a time, because its regex might go over the end of one.
    pub(super) by_line: bool,
}

/// A place that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The id of the pattern that found it; `value.<name>` for the value of a known secret.
    pub pattern: String,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// Bytes without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redacted {
    /// The bytes, each secret replaced by `[redacted:<pattern id>]`.
    pub bytes: Vec<u8>,
    /// How many were replaced, by pattern id.
    pub counts: BTreeMap<String, u64>,
}

/// Finds and replaces secrets: see [`super::Builder`] for what it looks for.
#[derive(Debug)]
pub struct Redactor {
    pub(super) patterns: Vec<Pattern>,
    pub(super) known: Known,
}

impl Redactor {
    /// The names of known secrets that are too short to be looked for.
    pub fn ignored(&self) -> &[String] {
        &self.known.ignored
    }

    /// All places that look like secrets, in order; none overlap.
    pub fn find(&self, text: &[u8]) -> Vec<Hit> {
        let hits = self.hits(text);
        hits.into_iter().map(|(id, range)| Hit { pattern: id.to_owned(), range }).collect()
    }

    /// Replaces all secrets.
    pub fn redact(&self, text: &[u8]) -> Redacted {
        let mut redacted = Redacted::default();
        replace(text, &self.hits(text), &mut redacted);
        redacted
    }

    /// Replaces all secrets in text; the result is text again.
    pub fn redact_text(&self, text: &str) -> (String, BTreeMap<String, u64>) {
        let redacted = self.redact(text.as_bytes());
        // Only a known value that is no UTF-8 itself could cut a character.
        (String::from_utf8_lossy(&redacted.bytes).into_owned(), redacted.counts)
    }

    /// Replaces all secrets in captured output from whose middle bytes are missing at the offset `gap`.
    ///
    /// A secret may have been cut in two there, and neither half can be recognised. So the broken lines on both sides of
    /// the gap are left out as well. Returns how many bytes that was, too; the gap is marked by `note` on its own line.
    pub fn redact_around_gap(&self, text: &[u8], gap: usize, note: &str) -> (Redacted, u64) {
        let (head, tail) = text.split_at(gap.min(text.len()));
        let kept_head = head.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let lost_tail = tail.iter().position(|b| *b == b'\n').map_or(tail.len(), |at| at + 1);
        let mut redacted = self.redact(&head[..kept_head]);
        redacted.bytes.extend_from_slice(note.as_bytes());
        redacted.bytes.push(b'\n');
        let rest = self.redact(&tail[lost_tail..]);
        redacted.bytes.extend(rest.bytes);
        add_counts(&mut redacted.counts, rest.counts);
        (redacted, (head.len() - kept_head + lost_tail) as u64)
    }

    pub(super) fn hits(&self, text: &[u8]) -> Vec<(&str, Range<usize>)> {
        let mut hits = Vec::new();
        for pattern in &self.patterns {
            pattern.find(text, |range| hits.push((pattern.id.as_str(), range)));
        }
        self.known.find(text, |id, range| hits.push((id, range)));
        merge(hits)
    }
}

impl Pattern {
    fn find(&self, text: &[u8], mut hit: impl FnMut(Range<usize>)) {
        if !self.by_line {
            return self.find_in(text, 0, &mut hit);
        }
        let mut start = 0;
        for line in text.split(is_line_end) {
            self.find_in(line, start, &mut hit);
            start += line.len() + 1;
        }
    }

    fn find_in(&self, text: &[u8], offset: usize, hit: &mut impl FnMut(Range<usize>)) {
        for captures in self.regex.captures_iter(text) {
            let secret = captures.name("secret").or(captures.get(0)).expect("group 0 is the match").range();
            if !secret.is_empty() && (self.plausible)(&text[secret.clone()]) {
                hit(offset + secret.start..offset + secret.end);
            }
        }
    }
}

/// Whether a byte ends a line as far as secrets go.
pub(super) fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Sorts, and joins what overlaps under the name of the first and longest.
fn merge(mut hits: Vec<(&str, Range<usize>)>) -> Vec<(&str, Range<usize>)> {
    // The sort is stable: of equal hits the pattern that stands first in its list wins.
    hits.sort_by_key(|(_, range)| (range.start, std::cmp::Reverse(range.end)));
    let mut merged: Vec<(&str, Range<usize>)> = Vec::new();
    for (id, range) in hits {
        match merged.last_mut() {
            Some((_, last)) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push((id, range)),
        }
    }
    merged
}

/// Appends `text` to `into`, with the hits replaced.
pub(super) fn replace(text: &[u8], hits: &[(&str, Range<usize>)], into: &mut Redacted) {
    let mut rest = 0;
    for (id, range) in hits {
        into.bytes.extend_from_slice(&text[rest..range.start]);
        into.bytes.extend_from_slice(format!("[redacted:{id}]").as_bytes());
        *into.counts.entry((*id).to_owned()).or_default() += 1;
        rest = range.end;
    }
    into.bytes.extend_from_slice(&text[rest..]);
}

pub(super) fn add_counts(counts: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (id, count) in more {
        *counts.entry(id).or_default() += count;
    }
}

#[cfg(test)]
mod tests;
