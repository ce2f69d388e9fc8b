//! Which lines a change adds to a file and which it removes.
//!
//! A line counts as added where the new file holds it more often than the old
//! one. A line that only moved is neither added nor removed, and the cost is
//! linear whatever the file holds. This is for checks; what people read is made
//! in [`checkrein_shared::tree::diff`].

use std::collections::HashMap;

use checkrein_shared::tree::RelPath;

/// The largest file whose lines are compared, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 8 << 20;

/// The most bytes of lines that all deltas of a review keep.
pub(crate) const KEPT_BYTES_MAX: usize = 64 << 20;

/// One line, with its number in its own version of the file, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) text: String,
}

/// What changed in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Where the new version stands, or stood where it was deleted.
    pub(crate) path: RelPath,
    /// Whether there was no such file before.
    pub(crate) created: bool,
    /// Whether the file is gone.
    pub(crate) deleted: bool,
    /// Whether either version holds NUL bytes: no text, but compared all the same.
    pub(crate) binary: bool,
    pub(crate) added: Vec<Line>,
    pub(crate) removed: Vec<Line>,
    /// Why its lines were not compared, where they were not.
    pub(crate) unread: Option<String>,
}

impl Delta {
    /// A change of which only the path is looked at.
    pub(crate) fn unread(path: RelPath, created: bool, why: impl Into<String>) -> Self {
        let (added, removed, unread) = (Vec::new(), Vec::new(), Some(why.into()));
        Self { path, created, deleted: false, binary: false, added, removed, unread }
    }

    /// Compares two versions; an absent one is empty.
    pub(crate) fn between(path: RelPath, old: Option<&[u8]>, new: Option<&[u8]>) -> Self {
        let (created, deleted) = (old.is_none(), new.is_none());
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let binary = old.contains(&0) || new.contains(&0);
        let (added, removed) = (surplus(new, old), surplus(old, new));
        Self { path, created, deleted, binary, added, removed, unread: None }
    }

    /// How many bytes its lines take.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.added.iter().chain(&self.removed).map(|line| line.text.len()).sum()
    }

    /// How many lines it adds and removes.
    pub(crate) fn line_count(&self) -> u64 {
        (self.added.len() + self.removed.len()) as u64
    }
}

/// The lines that `one` holds more often than `other`; of equal lines the last ones.
fn surplus(one: &[u8], other: &[u8]) -> Vec<Line> {
    let mut spare: HashMap<&[u8], usize> = HashMap::new();
    for line in lines(other) {
        *spare.entry(line).or_default() += 1;
    }
    let mut found = Vec::new();
    for (index, line) in lines(one).enumerate() {
        match spare.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                let text = String::from_utf8_lossy(line).into_owned();
                found.push(Line { number: index as u64 + 1, text });
            }
        }
    }
    found
}

/// The lines of a file, without what ends them.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let none = bytes.is_empty();
    body.split(|b| *b == b'\n').filter(move |_| !none).map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delta(old: &str, new: &str) -> String {
        let delta = Delta::between("f".parse().unwrap(), Some(old.as_bytes()), Some(new.as_bytes()));
        let shown =
            |sign: char, lines: Vec<Line>| lines.into_iter().map(move |l| format!("{sign}{}:{} ", l.number, l.text));
        shown('+', delta.added).chain(shown('-', delta.removed)).collect()
    }

    #[test]
    fn added_and_removed_lines_carry_the_numbers_of_their_own_version() {
        for (old, new, expected) in [
            ("a\nb\nc\n", "a\nx\nc\nb\n", "+2:x "),
            ("a\n", "", "-1:a "),
            ("", "a", "+1:a "),
            ("x\nx\n", "x\r\nx\r\nx\r\n", "+3:x "),
            ("", "\n", "+1: "),
            ("a\n", "b\n", "+1:b -1:a "),
        ] {
            assert_eq!(delta(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_compared_and_named_binary() {
        let delta = Delta::between("f".parse().unwrap(), None, Some(b"\x1b]0;\xff\0\x07\nplain"));
        assert!(delta.binary);
        assert_eq!(delta.added.len(), 2);
    }

    proptest! {
        #[test]
        fn any_two_versions_compare_and_swapping_them_swaps_the_sides(
            old in prop::collection::vec(prop::sample::select(&b"ab\n\r\xff\0"[..]), 0..60),
            new in prop::collection::vec(prop::sample::select(&b"ab\n\r\xff\0"[..]), 0..60),
        ) {
            let path: RelPath = "f".parse().unwrap();
            let there = Delta::between(path.clone(), Some(&old), Some(&new));
            let back = Delta::between(path, Some(&new), Some(&old));
            prop_assert_eq!(&there.added, &back.removed);
            prop_assert_eq!(&there.removed, &back.added);
            let count = |bytes: &[u8]| lines(bytes).count() as i64;
            prop_assert_eq!(count(&new) - count(&old), there.added.len() as i64 - there.removed.len() as i64);
        }
    }
}
