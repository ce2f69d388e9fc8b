//! A failed step in words, and a hash that is the same for the same failure.
//!
//! Rules compare the hashes to see that a retry changes nothing; so what
//! differs from run to run (times, addresses, counters) must not count. It
//! decides nothing about what follows from a failure.

use std::path::Path;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::process::Ending;

/// How many of the last lines are shown and hashed.
const LINES: usize = 20;

/// The longest line that is shown, in characters.
const LINE_CHARS_MAX: usize = 300;

/// What an ending is called in errors.
pub(crate) fn ending_text(ending: Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("exit code {code}"),
        Ending::Signalled(signal) => format!("ended by signal {signal}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::Cancelled => "cancelled".to_owned(),
    }
}

/// The last lines of some output that hold anything, made safe to show. `output` must be redacted already.
pub(crate) fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(tail(output));
    let mut lines: Vec<String> = text.lines().map(clean).filter(|line| !line.is_empty()).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    lines
}

/// No more than the end of a large output is looked at.
fn tail(output: &[u8]) -> &[u8] {
    &output[output.len().saturating_sub(64 * 1024)..]
}

fn clean(line: &str) -> String {
    let mut shown = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            // Colours and cursor movements: everything up to the final letter.
            chars.by_ref().skip(1).find(|c| ('@'..='~').contains(c));
        } else if c == '\t' {
            shown.push(' ');
        } else if !c.is_control() {
            shown.push(c);
        }
    }
    shown.trim().chars().take(LINE_CHARS_MAX).collect()
}

/// The hash of a failure: the same step that ends the same way with the same words fails the same.
pub(crate) fn error_hash(step: &StepId, how: &str, lines: &[String], scratch: &Path) -> Digest {
    let here = scratch.to_string_lossy();
    let normal: Vec<String> = lines.iter().map(|line| normalise(&line.replace(&*here, "."))).collect();
    json::digest(&(step, how, normal)).expect("strings always have a canonical form")
}

/// Numbers and addresses become `#`; runs of blanks become one.
fn normalise(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let hexadecimal =
            word.strip_prefix("0x").is_some_and(|d| !d.is_empty() && d.chars().all(|c| c.is_ascii_hexdigit()));
        if hexadecimal { "#".to_owned() } else { numbers_out(word) }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn numbers_out(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Digest {
        error_hash(&"fix".parse().unwrap(), "exit code 1", &last_lines(text.as_bytes()), Path::new("/c/scratch-3"))
    }

    #[test]
    fn what_differs_from_run_to_run_does_not_change_the_hash() {
        let one = hash("thread 12 panicked at 0x7ffe01 in /c/scratch-3/src/a.rs:10\nfinished in 0.31s\n\n");
        let two = hash("\u{1b}[31mthread 4711 panicked\u{1b}[0m at 0x55aa  in ./src/a.rs:10\nfinished in 12.99s");
        assert_eq!(one, two);
        assert_ne!(one, hash("thread 12 panicked at 0x7ffe01 in /c/scratch-3/src/b.rs:10\nfinished in 0.31s"));
    }

    #[test]
    fn step_and_ending_belong_to_the_hash() {
        let of = |step: &str, how| error_hash(&step.parse().unwrap(), how, &[], Path::new("/s"));
        assert_ne!(of("a", "exit code 1"), of("b", "exit code 1"));
        assert_ne!(of("a", "exit code 1"), of("a", "timed out"));
    }

    #[test]
    fn any_output_is_shown_safely_and_bounded() {
        let mut output = b"\xf0\x00\x1b[2J\x1b]0;title\x07visible\xff\n".to_vec();
        output.extend(std::iter::repeat_n(b'x', 10_000_000));
        let lines = last_lines(&output);
        assert!(lines.len() <= LINES && lines.iter().all(|l| l.chars().count() <= LINE_CHARS_MAX));
        let lines = last_lines(&output[..40]);
        assert!(lines[0].contains("visible") && !lines[0].chars().any(char::is_control), "{lines:?}");
    }
}
