//! The exact values of secrets, in the forms in which programs print them.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// Shorter values would be found everywhere.
pub(super) const VALUE_BYTES_MIN: usize = 6;

/// A line of a value of several lines (a private key) is looked for by itself from this length on.
const LINE_BYTES_MIN: usize = 16;

/// Base64 of a shorter value might be found by chance.
const ENCODED_BYTES_MIN: usize = 12;

struct Form {
    id: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// The values to look for. It has no readable `Debug`.
#[derive(Default)]
pub(super) struct Known {
    forms: Vec<Form>,
    pub(super) ignored: Vec<String>,
}

impl Known {
    pub(super) fn add(&mut self, name: &str, value: &[u8]) {
        if value.len() < VALUE_BYTES_MIN {
            self.ignored.push(name.to_owned());
            return;
        }
        let id = format!("value.{name}");
        self.add_form(&id, value.to_vec());
        self.add_form(&id, percent_encoded(value));
        self.add_form(&id, json_escaped(value));
        for encoded in base64_forms(value) {
            self.add_form(&id, encoded);
        }
        let lines = value.split(|b| *b == b'\n' || *b == b'\r');
        for line in lines.filter(|line| line.len() >= LINE_BYTES_MIN && !line.starts_with(b"-----")) {
            self.add_form(&id, line.to_vec());
        }
        // The longest first, so that a whole value is found before its lines.
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.bytes.len()));
    }

    fn add_form(&mut self, id: &str, bytes: Vec<u8>) {
        let bytes = Zeroizing::new(bytes);
        if bytes.len() >= VALUE_BYTES_MIN && !self.forms.iter().any(|form| form.bytes == bytes) {
            self.forms.push(Form { id: id.to_owned(), bytes });
        }
    }

    /// The length of the longest form.
    pub(super) fn bytes_max(&self) -> usize {
        self.forms.first().map_or(0, |form| form.bytes.len())
    }

    /// Calls `hit` with the id and the range of each occurrence.
    pub(super) fn find<'k>(&'k self, text: &[u8], mut hit: impl FnMut(&'k str, std::ops::Range<usize>)) {
        for form in &self.forms {
            let Some((first, rest)) = form.bytes.split_first() else { continue };
            let mut from = 0;
            while let Some(at) = text[from..].iter().position(|b| b == first) {
                let start = from + at;
                if text[start + 1..].starts_with(rest) {
                    hit(&form.id, start..start + form.bytes.len());
                    from = start + form.bytes.len();
                } else {
                    from = start + 1;
                }
            }
        }
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} forms)", self.forms.len())
    }
}

fn percent_encoded(value: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text.into_bytes()
}

fn json_escaped(value: &[u8]) -> Vec<u8> {
    let quoted = serde_json::to_vec(&String::from_utf8_lossy(value)).unwrap_or_default();
    quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default().to_vec()
}

/// What stays the same in base64 whatever stands around the value: once for each of the three alignments.
fn base64_forms(value: &[u8]) -> Vec<Vec<u8>> {
    if value.len() < ENCODED_BYTES_MIN {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for before in 0..3 {
        let padded = Zeroizing::new([&[0; 3][..before], value].concat());
        let whole_groups = padded.len() / 3 * 4;
        for encoded in [STANDARD_NO_PAD.encode(&*padded), URL_SAFE_NO_PAD.encode(&*padded)] {
            // The first characters mix with what stands before, those behind the last whole group with what follows.
            let start = if before == 0 { 0 } else { before + 1 };
            forms.push(encoded.as_bytes()[start..whole_groups].to_vec());
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn finds(known: &Known, text: &[u8]) -> bool {
        let mut found = false;
        known.find(text, |_, _| found = true);
        found
    }

    proptest! {
        #[test]
        fn a_value_is_found_in_every_form(
            value in prop::collection::vec(any::<u8>(), 12..40),
            before in prop::collection::vec(any::<u8>(), 0..5),
            after in prop::collection::vec(any::<u8>(), 0..5),
        ) {
            let mut known = Known::default();
            known.add("KEY", &value);
            let around = [&before[..], &value, &after].concat();
            prop_assert!(finds(&known, &around));
            prop_assert!(finds(&known, STANDARD.encode(&around).as_bytes()));
            prop_assert!(finds(&known, &percent_encoded(&around)));
        }
    }

    #[test]
    fn short_values_are_named_and_not_looked_for() {
        let mut known = Known::default();
        known.add("SHORT", b"hello");
        known.add("EMPTY", b"");
        assert!(!finds(&known, b"hello"));
        assert_eq!(known.ignored, ["SHORT", "EMPTY"]);
    }

    #[test]
    fn a_value_with_quotes_is_found_in_json() {
        let mut known = Known::default();
        known.add("KEY", b"pass\"word\\1");
        assert!(finds(&known, serde_json::json!({ "k": "pass\"word\\1" }).to_string().as_bytes()));
    }

    #[test]
    fn debug_output_holds_no_value() {
        let mut known = Known::default();
        known.add("KEY", b"hunter2hunter2");
        assert!(!format!("{known:?}").contains("hunter2"));
    }
}
