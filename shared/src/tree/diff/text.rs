//! Lines of unknown bytes as text that shows everything.
//!
//! What could hide, reorder or control is written as `<U+202E>`, a byte that is no
//! UTF-8 as `<0xE9>`. It is for reading; [`crate::tree::escape`] is for hashing.

use std::fmt::Write as _;

use super::super::escape;

/// Splits at line feeds only; the last piece has none where the content ends without one.
pub(super) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|b| *b == b'\n').collect()
}

/// Whether a content is shown as text at all.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(8192)].contains(&0)
}

/// One line, without its line feed.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) truncated: bool,
}

/// Writes a line out, at most about `limit` bytes of it.
pub(super) fn show(line: &[u8], limit: usize) -> Shown {
    let mut text = String::with_capacity(line.len().min(limit));
    let mut taken = 0;
    let mut after_symbol = false;
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            if text.len() >= limit {
                return truncated(text, line.len() - taken);
            }
            taken += c.len_utf8();
            if is_written_out(c, after_symbol) {
                write!(text, "<U+{:04X}>", u32::from(c)).expect("writing to a String can't fail");
                after_symbol = false;
            } else {
                text.push(c);
                after_symbol = !c.is_ascii();
            }
        }
        for byte in chunk.invalid() {
            if text.len() >= limit {
                return truncated(text, line.len() - taken);
            }
            taken += 1;
            write!(text, "<0x{byte:02X}>").expect("writing to a String can't fail");
            after_symbol = false;
        }
    }
    Shown { text, truncated: false }
}

fn truncated(mut text: String, rest: usize) -> Shown {
    write!(text, " … ({rest} more bytes)").expect("writing to a String can't fail");
    Shown { text, truncated: true }
}

fn is_written_out(c: char, after_symbol: bool) -> bool {
    // One selector after a symbol is how emoji are written; a row of them can carry a message.
    c != '\t' && escape::is_hidden(c) && !(c == '\u{fe0f}' && after_symbol)
}

/// The characters of a line that could hide something: control characters are shown but do not count.
pub(super) fn hidden(line: &[u8]) -> impl Iterator<Item = char> {
    let mut after_symbol = false;
    line.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).filter(move |c| {
        let counts = (escape::is_bidirectional(*c) || escape::is_invisible(*c)) && is_written_out(*c, after_symbol);
        after_symbol = !c.is_ascii() && !counts;
        counts
    })
}
