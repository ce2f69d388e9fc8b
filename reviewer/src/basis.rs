//! What each claim of a checkpoint really rests on: whatever its author says, it
//! is never shown as more.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::records::{Basis, Claim, Evidence, EvidenceKind, EvidenceRef, TestRun};

/// What is known about the evidence of a task.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Every ref of the task, through all indexes. Who they say made them is the worker's word.
    pub evidence: &'a BTreeMap<EvidenceRef, Evidence>,
    /// What reviewers made, as their signed verdicts list it.
    pub reviewers: &'a BTreeMap<EvidenceRef, Evidence>,
    /// The content of `test:` evidence, as far as it was read.
    pub tests: &'a BTreeMap<EvidenceRef, TestRun>,
    /// Commands that a reviewer ran itself on the checkpoint's tree, and that passed.
    pub verified: &'a BTreeSet<Vec<String>>,
}

/// What a claim rests on.
///
/// `verified` where each of its refs is a reviewer's own evidence, or a test that a reviewer ran again and that passed;
/// `self_reported` where at least one ref is an artifact in the index; `inferred` where all that resolves are files;
/// `absent` where nothing does. A ref that leads nowhere keeps a claim from being more than `self_reported`.
pub fn basis(claim: &Claim, known: &Known<'_>, has_file: impl Fn(&str) -> bool) -> Basis {
    let mut found: Vec<Basis> = Vec::new();
    for reference in &claim.refs {
        found.push(match known.evidence.get(reference) {
            _ if known.reviewers.contains_key(reference) => Basis::Verified,
            Some(_) if was_run_again(reference, known) => Basis::Verified,
            Some(_) if reference.kind() == EvidenceKind::File => Basis::Inferred,
            Some(_) => Basis::SelfReported,
            None if reference.kind() == EvidenceKind::File && has_file(reference.name()) => Basis::Inferred,
            None => Basis::Absent,
        });
    }
    match (found.iter().min(), found.iter().max()) {
        (Some(Basis::Verified), _) => Basis::Verified,
        (_, Some(Basis::Verified | Basis::SelfReported)) => Basis::SelfReported,
        (_, Some(best)) => *best,
        (_, None) => Basis::Absent,
    }
}

fn was_run_again(reference: &EvidenceRef, known: &Known<'_>) -> bool {
    known.tests.get(reference).is_some_and(|run| run.passed() && known.verified.contains(&run.command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn a_claim_is_worth_what_its_refs_are_worth_and_no_more() {
        let mut subject = Sample::new().log("log:a", "x").test("test:unit", 0).test("test:bad", 1).subject();
        let own = crate::testing::run("unit", true);
        let forged = crate::testing::run("forged", true).evidence.entries;
        subject.evidence.extend(forged);
        let verified = BTreeSet::from([own.command.clone()]);
        let known = Known {
            evidence: &subject.evidence,
            reviewers: &own.evidence.entries,
            tests: &subject.tests,
            verified: &verified,
        };
        let ran_nothing = BTreeSet::new();
        let unverified = Known { verified: &ran_nothing, ..known };
        for (refs, expected) in [
            (&["test:verifier/unit/rv-1/1"][..], Basis::Verified),
            (&["test:verifier/forged/rv-1/1"], Basis::SelfReported),
            (&["test:unit"], Basis::Verified),
            (&["test:bad"], Basis::SelfReported),
            (&["test:unit", "log:a"], Basis::SelfReported),
            (&["log:a"], Basis::SelfReported),
            (&["test:unit", "log:gone"], Basis::SelfReported),
            (&["file:src/a"], Basis::Inferred),
            (&["file:gone"], Basis::Absent),
            (&["log:gone"], Basis::Absent),
            (&[], Basis::Absent),
        ] {
            let subject = Sample::new().claim("it works", refs).subject();
            let claim = &subject.checkpoint.summary.completed[0];
            assert_eq!(basis(claim, &known, |path| path == "src/a"), expected, "{refs:?}");
        }
        let claim = &Sample::new().claim("it works", &["test:unit"]).subject().checkpoint.summary.completed[0];
        assert_eq!(basis(claim, &unverified, |_| false), Basis::SelfReported);
    }
}
