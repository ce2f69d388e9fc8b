//! One unambiguous text for any byte string, and the characters that hide.
//!
//! Valid, visible UTF-8 stands for itself; a backslash is doubled; every byte of
//! anything else is written `\xNN`. The lists below are fixed rather than taken
//! from a Unicode table, because hashes depend on them. This module does not
//! judge whether a hidden character is harmful.

use std::fmt::Write as _;

/// Text that is not the canonical escape of any byte string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not canonically escaped: write a backslash as `\\\\` and hidden bytes, and only those, as `\\xNN`")]
pub struct InvalidEscape(pub String);

/// Whether a character can be invisible, reorder its neighbours or act as a control.
pub fn is_hidden(c: char) -> bool {
    is_control(c) || is_bidirectional(c) || is_invisible(c)
}

/// Whether a character is a control character or breaks lines.
pub fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character changes the direction of the text around it.
pub fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character usually has no visible form: joiners, fillers, selectors, tags.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The canonical text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push_str("\\\\");
            } else if is_hidden(c) {
                push_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "\\x{byte:02x}").expect("writing to a String can't fail");
    }
}

/// The bytes that `text` is the canonical escape of.
///
/// # Errors
///
/// [`InvalidEscape`] where `text` is not exactly what [`encode`] writes.
pub fn decode(text: &str) -> Result<Vec<u8>, InvalidEscape> {
    let invalid = || InvalidEscape(text.chars().take(200).collect());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                tail
            }
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let mut byte = [0];
                hex::decode_to_slice([*high, *low], &mut byte).map_err(|_| invalid())?;
                bytes.push(byte[0]);
                tail
            }
            (b'\\', _) => return Err(invalid()),
            _ => {
                bytes.push(first);
                tail
            }
        };
    }
    // One text for each byte string: `\x41` for `A` would be a second name of the same file.
    if encode(&bytes) == text { Ok(bytes) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_and_odd_bytes_are_written_out() {
        for (bytes, text) in [
            (&b"src/main.rs"[..], r"src/main.rs"),
            ("café.md".as_bytes(), "café.md"),
            (b"x\ny", r"x\x0ay"),
            (b"a\\b", r"a\\b"),
            (b"\xff.bin", r"\xff.bin"),
            ("sep\u{2028}two".as_bytes(), r"sep\xe2\x80\xa8two"),
            ("\u{202e}txt".as_bytes(), r"\xe2\x80\xaetxt"),
            ("\u{e0041}".as_bytes(), r"\xf3\xa0\x81\x81"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).unwrap(), bytes);
        }
    }

    #[test]
    fn a_second_spelling_of_the_same_bytes_is_refused() {
        for bad in [r"\x41", r"\xFF", r"\x5c", r"\", r"\x", r"\xf", r"\n", r"\xc3\xa9", "a\u{200b}"] {
            assert!(decode(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_survive_a_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let text = encode(&bytes);
            prop_assert!(!text.chars().any(is_hidden));
            prop_assert_eq!(decode(&text).unwrap(), bytes);
        }

        #[test]
        fn any_text_survives_a_round_trip(text in ".{0,40}") {
            prop_assert_eq!(decode(&encode(text.as_bytes())).unwrap(), text.as_bytes());
        }

        #[test]
        fn what_decodes_encodes_to_the_same_text(text in r"([a-z]|\\x[0-9a-f]{2}|\\\\){0,12}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
