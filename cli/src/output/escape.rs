//! Makes text from agents, diffs and file names safe for a terminal.
//!
//! Control characters could move the cursor or retitle the window, and
//! bidirectional or invisible ones could show another text than there is. They
//! are shown as escapes; nothing is left out.

use std::borrow::Cow;

use checkrein_shared::tree::escape::is_hidden;

/// A text in one line: line ends are escaped too.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// A text of several lines: line ends and tabs stay.
pub(crate) fn shown_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

fn escape(text: &str, odd: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&odd) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if odd(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_deceive_a_reader_is_escaped_and_the_rest_stays() {
        assert_eq!(shown("plain é 中 🦀"), "plain é 中 🦀");
        assert_eq!(shown("\u{1b}[2Jgone\u{7}\r"), "\\u{1b}[2Jgone\\u{7}\\r");
        assert_eq!(shown("a\u{202e}b\u{200b}\u{feff}\u{9b}"), "a\\u{202e}b\\u{200b}\\u{feff}\\u{9b}");
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown_lines("a\n\tb\r"), "a\n\tb\\r");
    }
}
