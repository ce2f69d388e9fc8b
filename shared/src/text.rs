//! Characters that make text look different from what it is, and how to show such text honestly.
//!
//! Bidirectional controls reorder what a reader sees (CVE-2021-42574), zero-width and tag characters hide text from
//! people that programs and models read, control characters drive terminals. This module finds and escapes them; it
//! never changes text that is stored.

use std::fmt::Write as _;

/// One character that a reader would not see, or would be misled by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspicious {
    /// Where it starts, in bytes.
    pub offset: usize,
    /// The character.
    pub character: char,
    /// What kind it is: see [`Kind`].
    pub kind: Kind,
}

/// Why a character is suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Changes the order in which its neighbours are shown.
    Bidirectional,
    /// Has no width: it splits or pads words unseen.
    ZeroWidth,
    /// Spells text that is never shown.
    Tag,
    /// Selects a glyph; a run of them can carry hidden data.
    VariationSelector,
    /// Drives a terminal or ends a line unseen.
    Control,
}

impl Kind {
    /// The name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bidirectional => "bidirectional control",
            Self::ZeroWidth => "zero-width character",
            Self::Tag => "tag character",
            Self::VariationSelector => "variation selector",
            Self::Control => "control character",
        }
    }
}

/// What kind of suspicious character this is on its own; `None` for ordinary ones.
fn kind(character: char) -> Option<Kind> {
    Some(match character {
        '\t' | '\n' => return None,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => Kind::Control,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => Kind::Bidirectional,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' => Kind::ZeroWidth,
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => Kind::ZeroWidth,
        '\u{1d173}'..='\u{1d17a}' => Kind::ZeroWidth,
        '\u{e0000}'..='\u{e007f}' => Kind::Tag,
        '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::VariationSelector,
        _ => return None,
    })
}

/// Whether a suspicious character is ordinary where it stands: joiners and one variation selector inside other than
/// ASCII writing (emoji, Persian, the scripts of India), a byte order mark at the start, the end of a line in Windows.
fn is_in_its_place(character: char, before: Option<char>, after: Option<char>) -> bool {
    let is_script = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && kind(c).is_none());
    match character {
        '\r' => after == Some('\n'),
        '\u{feff}' => before.is_none(),
        '\u{200c}' | '\u{200d}' => (is_script(before) || before == Some('\u{fe0f}')) && is_script(after),
        // The keycaps `1️⃣` are the one place after ASCII.
        '\u{fe0e}' | '\u{fe0f}' => is_script(before) || after == Some('\u{20e3}'),
        _ => false,
    }
}

/// All suspicious characters of a text, in order.
pub fn suspicious(text: &str) -> impl Iterator<Item = Suspicious> + '_ {
    let mut before = None;
    text.char_indices().filter_map(move |(offset, character)| {
        let previous = before.replace(character);
        let kind = kind(character)?;
        let after = text[offset + character.len_utf8()..].chars().next();
        (!is_in_its_place(character, previous, after)).then_some(Suspicious { offset, character, kind })
    })
}

/// The text with each suspicious character written as `\u{202e}`. Ordinary text comes back unchanged.
///
/// A backslash stays what it is, so the result is for people to read, not to be parsed back.
pub fn escape_for_display(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = 0;
    for found in suspicious(text) {
        shown.push_str(&text[rest..found.offset]);
        // Writing to a string can't fail.
        let _ = write!(shown, "\\u{{{:04x}}}", u32::from(found.character));
        rest = found.offset + found.character.len_utf8();
    }
    shown.push_str(&text[rest..]);
    shown
}

/// As [`escape_for_display`] for bytes that may be no text: each byte that is not UTF-8 becomes `\xff`.
pub fn escape_bytes_for_display(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&escape_for_display(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_hides_code_is_found_and_shown() {
        for (text, kind, shown) in [
            ("if admin\u{202e} // {", Kind::Bidirectional, "if admin\\u{202e} // {"),
            ("pass\u{200b}word", Kind::ZeroWidth, "pass\\u{200b}word"),
            ("a\u{200d}b", Kind::ZeroWidth, "a\\u{200d}b"),
            ("ok\u{e0041}", Kind::Tag, "ok\\u{e0041}"),
            ("x\u{fe01}", Kind::VariationSelector, "x\\u{fe01}"),
            ("\u{1f600}\u{e0101}", Kind::VariationSelector, "\u{1f600}\\u{e0101}"),
            ("\u{1b}[2J", Kind::Control, "\\u{001b}[2J"),
            ("a\rb", Kind::Control, "a\\u{000d}b"),
            ("late \u{feff}mark", Kind::ZeroWidth, "late \\u{feff}mark"),
        ] {
            let found: Vec<_> = suspicious(text).collect();
            assert_eq!(found.len(), 1, "{text:?}");
            assert_eq!(found[0].kind, kind, "{text:?}");
            assert!(text[found[0].offset..].starts_with(found[0].character));
            assert_eq!(escape_for_display(text), shown);
        }
    }

    #[test]
    fn ordinary_writing_is_left_alone() {
        for text in [
            "fn main() {\n\t\n}\r\n",
            "Grüße, 检查点, проверка, ניסיון, café",
            "می‌خواهم",
            "क्‍ष",
            "👩‍💻 ❤️ 🏳️‍🌈 1️⃣",
            "\u{feff}with a byte order mark",
            r"a \u{202e} that is spelled out",
        ] {
            assert_eq!(suspicious(text).next(), None, "{text:?}");
            assert_eq!(escape_for_display(text), text);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_bytes() {
        assert_eq!(escape_bytes_for_display(b"\xf0 ok \xff\x00"), "\\xf0 ok \\xff\\u{0000}");
        assert_eq!(escape_bytes_for_display("é\n".as_bytes()), "é\n");
    }

    proptest! {
        #[test]
        fn shown_text_holds_nothing_suspicious(text in ".{0,40}|[\u{200b}-\u{2070}a\n\u{e0000}-\u{e0080}]{0,20}") {
            let shown = escape_for_display(&text);
            prop_assert_eq!(suspicious(&shown).next(), None);
            prop_assert_eq!(shown == text, suspicious(&text).next().is_none());
        }
    }
}
