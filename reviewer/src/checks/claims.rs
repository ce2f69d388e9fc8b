//! What the author claims, held against the evidence that the claims name.
//!
//! The words of a claim are never believed. They serve only to tell what its
//! refs should show: a claim that says that a test fails may name a failed run.

use checkrein_shared::records::{Claim, EvidenceKind, EvidenceRef, Severity, SourceRef, TestRun};

use crate::check::{Check, Raised, field};
use crate::quote;
use crate::subject::Subject;

/// Beginnings of words with which a claim owns up to a failure.
const FAILURE: [&str; 6] = ["fail", "broken", "reproduc", "crash", "error", "red"];

/// Words that turn such a word into its opposite.
const NEGATION: [&str; 8] = ["no", "0", "zero", "without", "not", "never", "none", "longer"];

/// Words with which a claim says that it is still so.
const REMAINING: [&str; 5] = ["still", "remains", "remaining", "known", "unfixed"];

/// Words with which a claim says that all is well.
const SUCCESS: [&str; 8] = ["pass", "passes", "passed", "succeed", "succeeds", "green", "works", "done"];

/// Words with which a claim says that files were changed.
const CHANGE: [&str; 22] = [
    "fix",
    "fixes",
    "fixed",
    "change",
    "changes",
    "changed",
    "add",
    "adds",
    "added",
    "update",
    "updated",
    "implement",
    "implemented",
    "remove",
    "removed",
    "renamed",
    "wrote",
    "created",
    "refactored",
    "modified",
    "edited",
    "corrected",
];

fn words(claim: &Claim) -> Vec<String> {
    let text = claim.text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn says(words: &[String], any: &[&str]) -> bool {
    words.iter().any(|word| any.contains(&word.as_str()))
}

/// Whether a claim itself says that something fails. "Fixed the failing test" and "no failures" do not.
fn owns_up(claim: &Claim) -> bool {
    let words = words(claim);
    let fails = words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).map(|at| words[at].as_str());
        FAILURE.iter().any(|start| word.starts_with(start)) && !before.is_some_and(|b| NEGATION.contains(&b))
    });
    fails && (says(&words, &REMAINING) || !(says(&words, &SUCCESS) || says(&words, &CHANGE)))
}

/// Every claim resolves to evidence.
pub(super) fn claim_refs(subject: &Subject) -> Vec<Raised> {
    let summary = &subject.checkpoint.summary;
    let completed = summary.completed.iter().enumerate().map(|(n, c)| ("completed", n, c));
    let next = summary.next.iter().enumerate().map(|(n, c)| ("next", n, c));
    let mut raised = Vec::new();
    for (list, index, claim) in completed.chain(next) {
        let place = vec![field(format!("summary/{list}/{index}"))];
        let text = quote::line(&claim.text);
        let lost: Vec<&EvidenceRef> = claim.refs.iter().filter(|r| !subject.resolves(r)).collect();
        if !lost.is_empty() {
            let lost = quote::list(lost.into_iter().map(|r| quote::line(r.as_str())));
            let claim = format!("the claim \"{text}\" names evidence that does not exist: {lost}");
            raised.push(
                Raised::new(Check::ClaimRefs, Severity::Medium, claim, place)
                    .act(format!("Name evidence that exists for the claim \"{text}\", or drop the claim.")),
            );
        } else if list == "completed" && claim.refs.is_empty() {
            let claim = format!("the claim \"{text}\" names no evidence at all");
            raised.push(
                Raised::new(Check::ClaimRefs, Severity::Low, claim, place)
                    .act(format!("Name the evidence for the claim \"{text}\"."))
                    .only_warn(),
            );
        }
    }
    raised
}

/// No claim is contradicted by its own evidence.
pub(super) fn claim_contradicted(subject: &Subject) -> Vec<Raised> {
    let claims = subject.checkpoint.summary.completed.iter().enumerate();
    claims.filter_map(|(index, claim)| contradiction(subject, index, claim)).collect()
}

fn contradiction(subject: &Subject, index: usize, claim: &Claim) -> Option<Raised> {
    let (why, source) = failed_run(subject, claim).or_else(|| unchanged_file(subject, claim))?;
    let text = quote::line(&claim.text);
    let refs = std::iter::once(field(format!("summary/completed/{index}"))).chain(source).collect();
    let statement = format!("the claim \"{text}\" is contradicted by its own evidence: {why}");
    Some(
        Raised::new(Check::ClaimContradicted, Severity::High, statement, refs)
            .act(format!("Make \"{text}\" true, or stop claiming it: {why}.")),
    )
}

/// A claim of success that rests on a run that failed, named directly or by its output.
fn failed_run(subject: &Subject, claim: &Claim) -> Option<(String, Option<SourceRef>)> {
    if owns_up(claim) {
        return None;
    }
    let names = |name: &EvidenceRef, run: &TestRun| claim.refs.iter().any(|r| r == name || *r == run.log);
    let (name, run) = subject.tests.iter().find(|(name, run)| names(name, run) && !run.passed())?;
    let how = match run.exit_code {
        _ if run.timed_out => "ran into its time limit".to_owned(),
        Some(code) => format!("ended with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    };
    let command = quote::line(&run.command.join(" "));
    Some((format!("`{command}` {how}"), Some(SourceRef::Evidence(name.clone()))))
}

/// A claim that files were changed, where they were not.
fn unchanged_file(subject: &Subject, claim: &Claim) -> Option<(String, Option<SourceRef>)> {
    if !says(&words(claim), &CHANGE) {
        return None;
    }
    let touched = subject.changeset.touched();
    let changed = |path| touched.contains(path) || subject.applied.contains(path);
    let files: Vec<_> = claim.refs.iter().filter_map(|r| subject.file_of(r)).collect();
    if !files.is_empty() && !files.iter().any(changed) {
        let list = quote::list(&files);
        return Some((format!("the change touches none of {list}"), None));
    }
    let shows_change = |r: &EvidenceRef| matches!(r.kind(), EvidenceKind::Diff | EvidenceKind::Changeset);
    let names_diff = claim.refs.iter().any(shows_change);
    let nothing = subject.changeset.is_empty() && subject.applied.is_empty();
    (nothing && (names_diff || claim.refs.is_empty()))
        .then(|| ("no file was changed".to_owned(), Some(field("changesets/proposed"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    fn changed() -> Sample {
        Sample::new().base("a.sh", "1\n").tree("a.sh", "2\n").base("b.sh", "b\n").tree("b.sh", "b\n")
    }

    #[test]
    fn refs_that_lead_nowhere_are_raised_and_files_of_the_tree_are_no_strangers() {
        let sample = changed().log("log:fix", "fix");
        for (refs, expected) in [
            (&["log:fix"][..], 0),
            (&["file:a.sh"], 0),
            (&["log:other"], 1),
            (&["log:fix", "file:gone.sh"], 1),
            (&["test:unit"], 1),
            (&[], 1),
        ] {
            let raised = claim_refs(&sample.clone().claim("read the code", refs).subject());
            assert_eq!(raised.len(), expected, "{refs:?}");
        }
        assert!(claim_refs(&sample.next("look further").subject()).is_empty());
    }

    #[test]
    fn a_claim_is_held_against_what_its_refs_show() {
        let sample = changed().test("test:bad", 1).test("test:good", 0);
        for (text, refs, contradicted) in [
            ("all tests pass", &["test:bad"][..], true),
            ("all tests pass", &["log:test:bad"], true),
            ("all tests pass", &["test:good"], false),
            ("all tests pass, no failures", &["test:bad"], true),
            ("fixed the failing test", &["test:bad"], true),
            ("0 failed", &["test:bad"], true),
            ("reproduced: the test fails", &["test:bad"], false),
            ("fixed half of it; this test still fails", &["test:bad"], false),
            ("fixed the bug", &["file:b.sh"], true),
            ("fixed the bug", &["file:a.sh"], false),
            ("fixed the bug", &["file:b.sh", "file:a.sh"], false),
            ("read the module", &["file:b.sh"], false),
            ("the parser correctly handles additional fields", &["file:b.sh"], false),
        ] {
            let raised = claim_contradicted(&sample.clone().claim(text, refs).subject());
            assert_eq!(!raised.is_empty(), contradicted, "{text} {refs:?}");
        }
    }

    #[test]
    fn a_fix_without_any_change_is_a_contradiction() {
        let nothing = Sample::new().base("a.sh", "1\n").tree("a.sh", "1\n");
        assert_eq!(claim_contradicted(&nothing.clone().claim("fixed the bug", &[]).subject()).len(), 1);
        assert!(claim_contradicted(&nothing.claim("looked at the bug", &[]).subject()).is_empty());
        assert!(claim_contradicted(&changed().claim("fixed the bug", &[]).subject()).is_empty());
    }
}
