//! Characters that make text look different from what it is.

use checkrein_shared::records::Severity;
use checkrein_shared::tree::escape;

use crate::check::{Check, Raised, line_of};
use crate::delta::Delta;
use crate::subject::Subject;

/// The most lines of one file that are cited.
const REFS_MAX: usize = 10;

/// Whether a character hides or reorders text. Ordinary controls (an escape in a test's output, a form feed) do not.
fn hides(c: char) -> bool {
    escape::is_bidirectional(c) || escape::is_invisible(c)
}

/// No bidirectional or invisible characters in added lines and file names.
pub(super) fn invisible(subject: &Subject) -> Vec<Raised> {
    let names = subject.changeset.changes().iter().filter(|c| c.new.is_some()).map(|c| &c.path);
    let mut raised: Vec<Raised> = names
        .filter(|path| String::from_utf8_lossy(path.as_bytes()).chars().any(escape::is_hidden))
        .map(|path| {
            let claim = format!("the file name `{path}` holds characters that can't be seen or that reorder text");
            Raised::new(Check::Invisible, Severity::High, claim, vec![subject.at(path)])
                .act(format!("Rename `{path}` so that it shows every character that it holds."))
        })
        .collect();
    raised.extend(subject.deltas.iter().filter(|d| !d.binary).filter_map(in_lines));
    raised
}

fn in_lines(delta: &Delta) -> Option<Raised> {
    let mut kinds = Vec::new();
    let mut refs = Vec::new();
    let mut lines = 0;
    for line in &delta.added {
        let first_of_file = line.number == 1;
        let found: Vec<char> = line
            .text
            .chars()
            .enumerate()
            // A byte order mark at the very beginning of a file is common and harmless.
            .filter(|(at, c)| hides(*c) && !(first_of_file && *at == 0 && *c == '\u{feff}'))
            .map(|(_, c)| c)
            .filter(|c| !is_emoji_joiner(&line.text, *c))
            .collect();
        if found.is_empty() {
            continue;
        }
        lines += 1;
        kinds.extend(found);
        if refs.len() < REFS_MAX {
            refs.push(line_of(&delta.path, line.number));
        }
    }
    if refs.is_empty() {
        return None;
    }
    kinds.sort_unstable();
    kinds.dedup();
    let kinds: Vec<String> = kinds.iter().take(8).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
    let path = &delta.path;
    let claim =
        format!("{lines} added lines of `{path}` hold invisible or reordering characters: {}", kinds.join(", "));
    Some(
        Raised::new(Check::Invisible, Severity::High, claim, refs)
            .act(format!("Remove the characters {} from `{path}`, or write them as escapes.", kinds.join(", "))),
    )
}

/// Emoji are made with joiners and selectors; in a line that has emoji those two are ordinary.
fn is_emoji_joiner(line: &str, c: char) -> bool {
    let emoji = |c: char| matches!(c, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}');
    matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') && line.chars().any(emoji)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn hidden_characters_in_added_lines_are_raised_and_look_alikes_are_not() {
        for (text, expected) in [
            ("access = \"user\u{202e} // admin\"\n", 1),
            ("a\u{200b}b\n", 1),
            ("tag\u{e0041}\n", 1),
            ("x\u{2066}y\n", 1),
            ("middle\u{feff}mark\n", 1),
            ("\u{feff}first line\n", 0),
            ("👩\u{200d}💻 ❤\u{fe0f}\n", 0),
            ("\x1b[31mred\x1b[0m\n", 0),
            ("naïve — “quotes”\n", 0),
        ] {
            let raised = invisible(&Sample::new().tree("a.txt", text).subject());
            assert_eq!(raised.len(), expected, "{text:?}");
        }
    }

    #[test]
    fn only_added_lines_and_new_names_count() {
        let old = "old\u{202e}\n";
        assert!(invisible(&Sample::new().base("a", old).tree("a", "old\u{202e}\nnew\n").subject()).is_empty());
        assert!(invisible(&Sample::new().base("a", old).tree("a", "clean\n").subject()).is_empty());
        let name = "readme\\xe2\\x80\\xaetxt.sh";
        assert_eq!(invisible(&Sample::new().tree(name, "x\n").subject()).len(), 1);
        assert!(invisible(&Sample::new().base(name, "x\n").subject()).is_empty());
    }

    #[test]
    fn the_finding_itself_shows_no_hidden_character() {
        let raised = invisible(&Sample::new().tree("a", "x\u{202e}y\n").subject());
        let shown = format!("{}{}", raised[0].claim, raised[0].action);
        assert!(shown.contains("U+202E") && !shown.chars().any(hides));
        assert_eq!(raised[0].refs, [line_of("a", 1)]);
    }
}
