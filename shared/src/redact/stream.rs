//! Redaction of output that arrives in pieces: a secret that is split over two writes is still found.
//!
//! A stream gives out whole lines only, because no shape but a private key goes over the end of a line, and holds back
//! what may be the beginning of a private key or of a known value of several lines.

use std::collections::BTreeMap;
use std::ops::Range;

use super::find::{Redacted, Redactor, add_counts, is_line_end, replace};

/// More than this is never held back: a longer line or key is given out, or swallowed, in parts.
const HELD_BYTES_MAX: usize = 128 << 10;

/// How much of an endless line stays back, so that a token at its end is seen whole.
const TOKEN_BYTES: usize = 16 << 10;

/// Redacts a stream of bytes.
#[derive(Debug)]
pub struct Stream<'r> {
    redactor: &'r Redactor,
    /// What is held back, behind `context` bytes that were given out and only show what stands before.
    buffer: Vec<u8>,
    context: usize,
    /// A secret longer than anything we hold is being left out.
    is_swallowing: bool,
    counts: BTreeMap<String, u64>,
}

impl<'r> Stream<'r> {
    /// Starts with nothing.
    pub fn new(redactor: &'r Redactor) -> Self {
        Self { redactor, buffer: Vec::new(), context: 0, is_swallowing: false, counts: BTreeMap::new() }
    }

    /// Takes the next bytes; returns what is safe to show by now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(bytes);
        self.swallow();
        let known = self.redactor.known.bytes_max();
        // A known value that has begun in this line may go on in the next.
        let safe = self.line_start(self.buffer.len().saturating_sub(known.saturating_sub(1)));
        if safe <= self.context && self.buffer.len() - self.context > HELD_BYTES_MAX {
            return self.give_out(self.buffer.len() - TOKEN_BYTES.max(known));
        }
        self.give_out(safe)
    }

    /// Ends the stream: the rest, and how many secrets were replaced in all of it.
    pub fn finish(mut self) -> Redacted {
        self.swallow();
        let hits = self.redactor.hits(&self.buffer);
        let mut rest = self.replace_held(&hits, self.buffer.len());
        add_counts(&mut rest.counts, self.counts);
        rest
    }

    /// Where the line begins that holds the byte before `at`.
    fn line_start(&self, at: usize) -> usize {
        self.buffer[..at].iter().rposition(is_line_end).map_or(0, |end| end + 1)
    }

    fn give_out(&mut self, safe: usize) -> Vec<u8> {
        if safe <= self.context {
            return Vec::new();
        }
        let hits = self.redactor.hits(&self.buffer);
        let Some(end) = self.edge(&hits, safe) else { return Vec::new() };
        let given = self.replace_held(&hits, end);
        drop(hits);
        add_counts(&mut self.counts, given.counts);
        // What was given out of a line that goes on stays as context, as far as it can matter.
        let kept_from = self.line_start(end).max(end.saturating_sub(TOKEN_BYTES));
        self.buffer.drain(..kept_from);
        self.context = end - kept_from;
        given.bytes
    }

    /// Where to stop at or before `safe`, so that nothing is cut that is a secret or may become one.
    fn edge(&mut self, hits: &[(&str, Range<usize>)], safe: usize) -> Option<usize> {
        let is_too_long = self.buffer.len() - self.context > HELD_BYTES_MAX;
        let mut end = safe;
        // What touches the first edge may go on beyond it; a later edge must only not cut anything.
        let crosses = |end: usize, range: &Range<usize>| {
            range.start < end && if end == safe { range.end >= end } else { range.end > end }
        };
        while let Some((_, range)) = hits.iter().find(|(_, range)| crosses(end, range)) {
            if range.end == self.buffer.len() && range.len() > HELD_BYTES_MAX {
                self.is_swallowing = true;
                return Some(range.end);
            }
            // Without the beginning of its line a secret might not be recognised again.
            let line = self.line_start(range.start);
            end = if line <= self.context && is_too_long { range.start } else { line };
            if end <= self.context {
                return None;
            }
        }
        Some(end)
    }

    /// What is held, up to `end`, with the hits replaced; no hit may lie across `end`.
    fn replace_held(&self, hits: &[(&str, Range<usize>)], end: usize) -> Redacted {
        let inside = hits.iter().filter(|(_, range)| range.start >= self.context && range.start < end);
        let inside: Vec<_> =
            inside.map(|(id, range)| (*id, range.start - self.context..range.end - self.context)).collect();
        let mut replaced = Redacted::default();
        replace(&self.buffer[self.context..end], &inside, &mut replaced);
        replaced
    }

    /// Leaves out the rest of a secret whose beginning was too long to hold.
    fn swallow(&mut self) {
        if !self.is_swallowing {
            return;
        }
        let belongs = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_.~-\\ \r\n".contains(b);
        let rest = &self.buffer[self.context..];
        let end = rest.iter().position(|b| !belongs(b)).unwrap_or(rest.len());
        self.is_swallowing = end == rest.len();
        self.buffer.drain(self.context..self.context + end);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::redact::{Builder, Secret};

    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
        let several_lines = Secret::new("first line of it\nsecond line of it\nend");
        Builder::new().all_packs().known("MULTI", &several_lines).known("ONE", &Secret::new("hunter2hunter2")).build()
    });

    fn in_pieces(redactor: &Redactor, text: &[u8], mut cuts: Vec<usize>) -> Redacted {
        let mut stream = Stream::new(redactor);
        let mut shown = Vec::new();
        cuts.iter_mut().for_each(|cut| *cut %= text.len() + 1);
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        for cut in cuts {
            shown.extend(stream.push(&text[from..cut]));
            from = cut;
        }
        let mut end = stream.finish();
        shown.append(&mut end.bytes);
        Redacted { bytes: shown, counts: end.counts }
    }

    fn fragments() -> impl Strategy<Value = Vec<u8>> {
        let key = format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
            "MIIEowIBAAKCAQEAx1\n".repeat(9)
        );
        let fixed = [
            "sk-ant-REDACTED",
            "ghp_0123456789abcdefghij0123456789abcdef",
            "amqp://user:pass@host:5672/",
            "Authorization: Bearer abc.def-123",
            "hunter2hunter2",
            "first line of it\nsecond line of it\nend",
            "first line of it\n",
            "-----BEGIN ",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghij",
            "\n",
            "\r\n",
            " ",
            "word",
            "é",
            "PASSWORD=correcthorse",
        ];
        let mut choices: Vec<BoxedStrategy<Vec<u8>>> =
            fixed.iter().map(|text| Just(text.as_bytes().to_vec()).boxed()).collect();
        choices.push(Just(key.into_bytes()).boxed());
        choices.push(prop::collection::vec(any::<u8>(), 0..8).boxed());
        prop::collection::vec(proptest::strategy::Union::new(choices), 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn pieces_are_redacted_like_the_whole(text in fragments(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
            let whole = REDACTOR.redact(&text);
            let pieces = in_pieces(&REDACTOR, &text, cuts);
            prop_assert_eq!(String::from_utf8_lossy(&pieces.bytes), String::from_utf8_lossy(&whole.bytes));
            prop_assert_eq!(pieces.counts, whole.counts);
        }
    }

    #[test]
    fn a_key_printed_in_two_writes_is_redacted() {
        let redactor = Builder::new().all_packs().build();
        let mut stream = Stream::new(&redactor);
        let mut shown = stream.push(b"ready\nkey: sk-ant-api03-01234");
        assert_eq!(shown, b"ready\n", "whole lines come at once");
        shown.extend(stream.push(b"56789abcdef0123\n"));
        shown.extend(stream.finish().bytes);
        assert_eq!(String::from_utf8(shown).unwrap(), "ready\nkey: [redacted:anthropic-key]\n");
    }

    #[test]
    fn endless_lines_and_endless_keys_are_not_held() {
        let mut stream = Stream::new(&REDACTOR);
        let mut shown = 0;
        for _ in 0..40 {
            shown += stream.push(&b"word ".repeat(2000)).len();
            assert!(stream.buffer.len() <= HELD_BYTES_MAX + TOKEN_BYTES + 10_000);
        }
        assert!(shown > 40 * 10_000 - HELD_BYTES_MAX - TOKEN_BYTES - 10_000);

        let mut stream = Stream::new(&REDACTOR);
        let mut shown = stream.push(b"-----BEGIN PRIVATE KEY-----\n");
        for _ in 0..40 {
            shown.extend(stream.push(&b"MIIEowIBAAKCAQEAx1Ab\n".repeat(500)));
            assert!(stream.buffer.len() <= 3 * HELD_BYTES_MAX);
        }
        shown.extend(stream.push(b"-----END PRIVATE KEY-----\n\"after\""));
        shown.extend(stream.finish().bytes);
        assert_eq!(String::from_utf8(shown).unwrap(), "[redacted:private-key]\"after\"");
    }
}
