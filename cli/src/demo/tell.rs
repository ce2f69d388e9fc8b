//! The voice of the demos.

use crate::output::Output;

/// Says something between the lines of the run.
pub(super) fn tell(out: &Output, text: &str) {
    out.note("");
    for line in wrapped(text, 100) {
        out.note(out.painted("1;36", &line));
    }
}

/// Shows a command as somebody would type it.
pub(super) fn typed(out: &Output, command: &str) {
    out.note(out.bold(&format!("$ {command}")));
}

/// Breaks a text into lines of at most `width` characters, where it has spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("x/very/long/path y", 5), ["x/very/long/path", "y"]);
    }
}
