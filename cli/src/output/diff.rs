//! Diffs on a terminal: escaped, then coloured.

use super::{Output, shown_lines};

/// A readable diff, safe to print.
pub(crate) fn coloured_diff(out: &Output, text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for line in text.lines() {
        let line = shown_lines(line);
        let code = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Some("1"),
            [b'+', ..] => Some("32"),
            [b'-', ..] => Some("31"),
            [b'@', b'@', ..] => Some("36"),
            _ => None,
        };
        safe.push_str(&code.map_or_else(|| line.clone().into_owned(), |code| out.painted(code, &line)));
        safe.push('\n');
    }
    safe
}
