//! Were tests made weaker?
//!
//! These are rules of thumb about text, by language, and their findings say so.
//! They see that a test file is gone, that a file lost assertions, and that a
//! marker which skips tests came in. What they can't see, the verifiers do: they
//! run with the base's tests, and each difference there is a finding of its own.

use super::languages::{ANY, Language, TEST_PATHS, language_of};
use crate::check::{Check, Raised, line_of, whole_file};
use crate::delta::{Delta, Line};
use crate::quote;
use crate::subject::Subject;
use std::collections::BTreeSet;

use checkrein_shared::records::{Severity, SourceRef};
use checkrein_shared::tree::{ChangeKind, RelPath};

/// The most lines of one file that are cited.
const REFS_MAX: usize = 10;

fn is_test(subject: &Subject, path: &RelPath) -> bool {
    TEST_PATHS.matches(path) || subject.settings.verifiers.values().any(|v| v.from_base.matches(path))
}

/// Tests were not deleted, emptied or skipped.
pub(super) fn weakened_tests(subject: &Subject) -> Vec<Raised> {
    let mut raised = restored(subject);
    raised.extend(deleted(subject));
    raised.extend(subject.deltas.iter().filter(|delta| !delta.deleted).filter_map(|delta| weaker(subject, delta)));
    raised
}

/// What the verifiers had to take from the base: the change altered what it is measured by.
fn restored(subject: &Subject) -> Vec<Raised> {
    let paths: BTreeSet<&RelPath> = subject.runs.iter().flat_map(|run| &run.restored).collect();
    paths.into_iter().map(|path| altered(subject, path)).collect()
}

fn altered(subject: &Subject, path: &RelPath) -> Raised {
    let delta = subject.deltas.iter().find(|delta| delta.path == *path && !delta.deleted);
    let only_adds = delta.is_some_and(|delta| adds_only(delta, language_of(path).unwrap_or(&ANY)));
    let what = match (subject.tree.get(path).is_none(), only_adds) {
        (true, _) => "deletes",
        (false, true) => "adds to",
        (false, false) => "alters",
    };
    let claim =
        format!("the change {what} `{path}`, by which it is measured; the verifiers ran with the version of the base");
    let raised = Raised::new(Check::WeakenedTests, Severity::High, claim, vec![whole_file(path)])
        .act(format!("Put `{path}` back as it was; make the code pass the test that was there."));
    // The base's tests passed or failed without it, and nothing that was there is gone.
    if only_adds { raised.only_warn() } else { raised }
}

fn adds_only(delta: &Delta, language: &Language) -> bool {
    let skips = delta.added.iter().any(|line| language.skips(&line.text));
    delta.unread.is_none() && delta.removed.is_empty() && !delta.added.is_empty() && !skips
}

fn deleted(subject: &Subject) -> Vec<Raised> {
    let gone = subject.changeset.changes().iter().filter(|change| change.kind == ChangeKind::Deleted);
    gone.filter(|change| is_test(subject, &change.path) && !was_restored(subject, &change.path))
        .map(|change| {
            let path = &change.path;
            let claim = format!("the change deletes `{path}`, which by its name is a test");
            Raised::new(Check::WeakenedTests, Severity::High, claim, vec![whole_file(path)])
                .act(format!("Put `{path}` back, or say in the result why the test has no purpose any more."))
        })
        .collect()
}

fn was_restored(subject: &Subject, path: &RelPath) -> bool {
    subject.runs.iter().any(|run| run.restored.contains(path))
}

fn weaker(subject: &Subject, delta: &Delta) -> Option<Raised> {
    let path = &delta.path;
    // One finding for one file: what the verifiers restored is raised already.
    if was_restored(subject, path) {
        return None;
    }
    let test = is_test(subject, path);
    let language = match language_of(path) {
        Some(language) => language,
        None if test => &ANY,
        None => return None,
    };
    // In Rust tests stand beside the code, and there these markers mean nothing else.
    let inline = language.has_inline_tests();
    // A new file can't skip a test that was there.
    let skips: Vec<&Line> = match (test || inline) && !delta.created {
        true => delta.added.iter().filter(|line| language.skips(&line.text)).collect(),
        false => Vec::new(),
    };
    let lost = if test { lost_assertions(language, delta) } else { 0 };
    if skips.is_empty() && lost == 0 {
        return None;
    }
    let mut what = Vec::new();
    if lost > 0 {
        what.push(format!("holds {lost} fewer lines that look like assertions"));
    }
    if let Some(first) = skips.first() {
        what.push(format!(
            "gains {} lines that look like skipping tests: \"{}\"",
            skips.len(),
            quote::line(first.text.trim())
        ));
    }
    let mut refs: Vec<SourceRef> = skips.iter().take(REFS_MAX).map(|line| line_of(path, line.number)).collect();
    if refs.is_empty() {
        refs.push(whole_file(path));
    }
    let claim = format!("`{path}` {}", what.join(" and "));
    Some(
        Raised::new(Check::WeakenedTests, Severity::High, claim, refs)
            .act(format!("Give `{path}` its assertions back and skip no test in it.")),
    )
}

fn lost_assertions(language: &Language, delta: &Delta) -> usize {
    let count = |lines: &[Line]| lines.iter().filter(|line| language.asserts(&line.text)).count();
    count(&delta.removed).saturating_sub(count(&delta.added))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;
    use crate::testing::Sample;

    fn raised(path: &str, old: &str, new: &str) -> usize {
        weakened_tests(&Sample::new().base(path, old).tree(path, new).subject()).len()
    }

    #[test]
    fn lost_assertions_are_raised_by_language_and_moved_ones_are_not() {
        for (path, old, new, expected) in [
            ("test.sh", "[ \"$x\" = 1 ] || exit 1\n", "echo fine\n", 1),
            ("test.sh", "[ \"$x\" = 1 ] || exit 1\n", "[ \"$x\" = 2 ] || exit 1\n", 0),
            ("tests/a.rs", "assert_eq!(f(), 1);\nlet x;\n", "let x;\n", 1),
            ("tests/a.rs", "assert_eq!(f(), 1);\nlet x;\n", "let x;\nassert_eq!(f(), 1);\n", 0),
            ("test_a.py", "assert f() == 1\n", "f()\n", 1),
            ("test_a.py", "assert f() == 1\n", "assert f() == 1\nassert g()\n", 0),
            ("src/a.test.ts", "expect(f()).toBe(1)\n", "f()\n", 1),
            ("a_test.go", "t.Fatal(err)\n", "_ = err\n", 1),
            ("src/FooTest.java", "assertEquals(1, f());\n", "f();\n", 1),
            ("spec/a_spec.rb", "expect(f).to eq 1\n", "f\n", 1),
            ("tests/data.xyz", "assert one\n", "one\n", 1),
            ("src/a.py", "assert f() == 1\n", "f()\n", 0),
            ("src/contest.sh", "[ a ]\n", "b\n", 0),
        ] {
            assert_eq!(raised(path, old, new), expected, "{path}: {old:?} -> {new:?}");
        }
    }

    #[test]
    fn skip_markers_in_added_lines_are_raised() {
        for (path, added, expected) in [
            ("tests/a.rs", "#[ignore]\n", 1),
            ("src/lib.rs", "    #[ignore = \"slow\"]\n", 1),
            ("src/lib.rs", "// ignore this\n", 0),
            ("test_a.py", "@pytest.mark.skip(reason='x')\n", 1),
            ("a.spec.js", "it.only('x', () => {})\n", 1),
            ("a.spec.js", "it('skips nothing', () => {})\n", 0),
            ("a_test.go", "t.Skip()\n", 1),
            ("src/ATest.java", "@Disabled\n", 1),
            ("tests/run.sh", "make check || true\n", 1),
            ("tests/run.sh", "exit 0\n", 1),
            ("tests/run.sh", "echo 'true'\n", 0),
            ("tests/run.sh", "rm -f out || true\n", 0),
            ("build.sh", "make check || true\n", 0),
        ] {
            assert_eq!(raised(path, "x\n", &format!("x\n{added}")), expected, "{path}: {added:?}");
        }
    }

    #[test]
    fn a_new_test_weakens_nothing() {
        assert!(weakened_tests(&Sample::new().tree("tests/new.sh", "make x || true\nexit 0\n").subject()).is_empty());
    }

    #[test]
    fn deleted_tests_are_raised_and_moved_ones_are_not() {
        let gone = Sample::new().base("tests/a.sh", "[ 1 ]\n").base("b", "b\n").tree("b", "b\n");
        assert_eq!(weakened_tests(&gone.clone().subject()).len(), 1);
        assert!(weakened_tests(&gone.tree("tests/sub/a.sh", "[ 1 ]\n").subject()).is_empty());
        assert!(weakened_tests(&Sample::new().base("src/a.sh", "[ 1 ]\n").subject()).is_empty());
    }

    #[test]
    fn what_verifiers_restored_is_one_finding_for_each_file() {
        let sample = Sample::new().base("check.sh", "[ 1 = 2 ]\n").tree("check.sh", "true\n");
        let mut subject = sample.verifier("unit", true).subject();
        assert!(weakened_tests(&subject)[0].claim.contains("look like assertions"));
        subject.runs[0].restored.insert("check.sh".parse().unwrap());
        subject.runs.push(subject.runs[0].clone());
        let raised = weakened_tests(&subject);
        assert_eq!(raised.len(), 1);
        assert!(raised[0].claim.contains("alters `check.sh`"));
    }

    #[test]
    fn more_tests_in_a_file_that_verifiers_restored_are_a_hint_and_no_fault() {
        for (added, at_most) in [("[ 2 = 2 ]\n", Level::Warn), ("exit 0\n", Level::Block)] {
            let new = format!("[ 1 = 1 ]\n{added}");
            let mut subject =
                Sample::new().base("check.sh", "[ 1 = 1 ]\n").tree("check.sh", &new).verifier("unit", true).subject();
            subject.runs[0].restored.insert("check.sh".parse().unwrap());
            let raised = weakened_tests(&subject);
            assert_eq!((raised.len(), raised[0].at_most), (1, at_most), "{added}");
        }
    }
}
