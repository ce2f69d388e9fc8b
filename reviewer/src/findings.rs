//! From what checks raise to findings with names and a history: the same fault in
//! the same place is the same finding in every round, and one that is gone is
//! closed with a ref into what is there now.

use std::collections::BTreeMap;

use checkrein_shared::ids::FindingId;
use checkrein_shared::json;
use checkrein_shared::records::{Finding, FindingStatus, SourceRef};
use checkrein_shared::tree::RelPath;

use crate::check::{self, Check, Level, Raised, field, whole_file};
use crate::subject::Subject;
use crate::verifiers::PREFIX;

/// A finding, with what the policy makes of it and what has to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) finding: Finding,
    pub(crate) check: Check,
    pub(crate) level: Level,
    pub(crate) action: String,
}

impl Settled {
    /// Whether it stands in the way of an approval.
    pub(crate) fn blocks(&self) -> bool {
        self.level == Level::Block && self.finding.status != FindingStatus::Fixed
    }
}

/// Where a finding stands, the same in every round: lines move, and each run of a verifier has its own ref.
fn place(refs: &[SourceRef]) -> String {
    match refs.first() {
        None => String::new(),
        Some(SourceRef::File { path, .. }) => format!("file:{path}"),
        Some(SourceRef::Checkpoint(field)) => format!("checkpoint:{field}"),
        Some(SourceRef::Evidence(reference)) => match verifier(reference.name()) {
            Some(name) => format!("{PREFIX}{name}"),
            None => format!("evidence:{reference}"),
        },
    }
}

/// The verifier whose run a ref names.
fn verifier(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)?.split('/').next()
}

fn name(check: Check, place: &str) -> FindingId {
    let hash = json::digest(&(check.as_str(), place)).expect("strings always have a canonical form");
    let id = format!("{}-{}", check.as_str(), hash.short());
    id.parse().expect("a check's name and hexadecimal digits make an id")
}

/// Findings without a history, for a review that ended early.
pub(crate) fn first_time(raised: Vec<Raised>, level: Level) -> Vec<Settled> {
    merge(raised.into_iter().map(|r| (r.at_most.min(level), r))).into_values().collect()
}

/// Findings with their history, those that are closed included.
pub(crate) fn settle(subject: &Subject, raised: Vec<Raised>) -> Vec<Settled> {
    let level = |r: &Raised| r.at_most.min(subject.settings.level(r.check));
    let leveled = raised.into_iter().map(|r| (level(&r), r)).filter(|(level, _)| *level != Level::Off);
    let mut found = merge(leveled);
    for open in &subject.open {
        let Some(check) = check::parse(&open.check) else { continue };
        let place = place(&open.source_refs);
        match found.get_mut(&(check, place.clone())) {
            Some(settled) => {
                settled.finding.id = open.id.clone();
                settled.finding.status = match open.status {
                    FindingStatus::Fixed => FindingStatus::Regressed,
                    _ => FindingStatus::Open,
                };
            }
            None if open.status == FindingStatus::Fixed => {}
            None => {
                if let Some(refs) = proof_of_repair(subject, check, &place) {
                    found.insert((check, place), closed(open, check, refs));
                }
            }
        }
    }
    found.into_iter().filter(|(_, s)| !was_accepted(subject, s)).map(|(_, settled)| settled).collect()
}

/// One finding for each check and place; what else is raised there adds to it.
fn merge(raised: impl Iterator<Item = (Level, Raised)>) -> BTreeMap<(Check, String), Settled> {
    let mut found: BTreeMap<(Check, String), Settled> = BTreeMap::new();
    for (level, raised) in raised {
        let place = place(&raised.refs);
        let new = || Settled {
            finding: Finding {
                id: name(raised.check, &place),
                check: raised.check.as_str().to_owned(),
                severity: raised.severity,
                claim: raised.claim.clone(),
                source_refs: raised.refs.clone(),
                status: FindingStatus::New,
            },
            check: raised.check,
            level,
            action: raised.action.clone(),
        };
        found
            .entry((raised.check, place.clone()))
            .and_modify(|settled| add(settled, level, &raised))
            .or_insert_with(new);
    }
    found
}

fn add(settled: &mut Settled, level: Level, raised: &Raised) {
    let finding = &mut settled.finding;
    finding.severity = finding.severity.max(raised.severity);
    finding.claim = format!("{}; {}", finding.claim, raised.claim);
    let more: Vec<SourceRef> = raised.refs.iter().filter(|r| !finding.source_refs.contains(r)).cloned().collect();
    finding.source_refs.extend(more);
    settled.level = settled.level.max(level);
    if !settled.action.contains(&raised.action) {
        settled.action = format!("{} {}", settled.action, raised.action);
    }
}

fn closed(open: &Finding, check: Check, source_refs: Vec<SourceRef>) -> Settled {
    let finding = Finding { source_refs, status: FindingStatus::Fixed, ..open.clone() };
    Settled { finding, check, level: Level::Warn, action: String::new() }
}

/// Where one can see that a fault is gone; `None` where this review did not look at it again.
fn proof_of_repair(subject: &Subject, check: Check, place: &str) -> Option<Vec<SourceRef>> {
    if subject.settings.level(check) == Level::Off {
        return None;
    }
    if let Some(name) = verifier(place) {
        let run = subject.runs.iter().find(|run| run.name == name).filter(|run| run.ok())?;
        return run.attempts.last().map(|attempt| vec![SourceRef::Evidence(attempt.test.clone())]);
    }
    if let Some(path) = place.strip_prefix("file:")
        && path.parse().is_ok_and(|path: RelPath| subject.has_file(&path))
    {
        return Some(vec![whole_file(path), field("workspace/tree")]);
    }
    Some(vec![field("workspace/tree")])
}

/// A file that stands as it was accepted is not raised again; what is open in it stays so.
fn was_accepted(subject: &Subject, settled: &Settled) -> bool {
    let by_content = matches!(
        settled.check,
        Check::Secrets | Check::Invisible | Check::WeakenedTests | Check::PolicyOrCi | Check::Protected
    );
    let path: Option<RelPath> = match settled.finding.source_refs.first() {
        Some(SourceRef::File { path, .. }) => path.parse().ok(),
        _ => None,
    };
    by_content
        && settled.finding.status == FindingStatus::New
        && path.is_some_and(|path| subject.accepted_paths.contains(&path))
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::Severity;

    use super::*;
    use crate::check::line_of;
    use crate::testing::Sample;

    fn secret(line: u64) -> Raised {
        Raised::new(Check::Secrets, Severity::Critical, "a secret", vec![line_of("a", line)]).act("Take it out.")
    }

    fn open(settled: &Settled, id: &str, status: FindingStatus) -> Finding {
        Finding { id: id.parse().unwrap(), status, ..settled.finding.clone() }
    }

    #[test]
    fn the_same_fault_keeps_its_name_when_lines_move() {
        let mut subject = Sample::new().tree("a", "x\n").subject();
        let first = settle(&subject, vec![secret(1)]);
        assert_eq!(first[0].finding.status, FindingStatus::New);
        assert_eq!(settle(&subject, vec![secret(7)])[0].finding.id, first[0].finding.id);

        for (before, now) in [
            (FindingStatus::New, FindingStatus::Open),
            (FindingStatus::Open, FindingStatus::Open),
            (FindingStatus::Regressed, FindingStatus::Open),
            (FindingStatus::Fixed, FindingStatus::Regressed),
        ] {
            subject.open = vec![open(&first[0], "f-sample00-1", before)];
            let second = settle(&subject, vec![secret(7)]);
            assert_eq!((second[0].finding.id.as_str(), second[0].finding.status), ("f-sample00-1", now));
        }
    }

    #[test]
    fn what_is_gone_is_closed_with_a_ref_and_only_where_it_was_looked_at() {
        let mut subject = Sample::new().tree("a", "x\n").subject();
        let first = settle(&subject, vec![secret(1)]);
        subject.open = vec![open(&first[0], "f-1", FindingStatus::Open)];
        let now = settle(&subject, Vec::new());
        assert_eq!(now[0].finding.status, FindingStatus::Fixed);
        assert_eq!(now[0].finding.source_refs, [whole_file("a"), field("workspace/tree")]);

        subject.settings.set(Check::Secrets, Level::Off);
        assert!(settle(&subject, Vec::new()).is_empty());
        subject.open[0].check = "a person's own".into();
        assert!(settle(&subject, Vec::new()).is_empty());
    }

    #[test]
    fn a_verifier_closes_its_finding_only_by_passing() {
        let failing = Sample::new().verifier("unit", false).subject();
        let raised = crate::checks::run_all(&failing);
        let found = settle(&failing, raised);
        let finding = found.iter().find(|s| s.check == Check::Verifiers).unwrap();

        let mut passing = Sample::new().verifier("unit", true).subject();
        passing.open = vec![open(finding, "f-1", FindingStatus::Open)];
        let closed = settle(&passing, Vec::new());
        assert_eq!(closed[0].finding.status, FindingStatus::Fixed);
        assert!(matches!(&closed[0].finding.source_refs[0], SourceRef::Evidence(r) if r.name().contains("unit")));
        passing.runs.clear();
        assert!(settle(&passing, Vec::new()).is_empty());
    }

    #[test]
    fn two_things_in_one_place_are_one_finding() {
        let subject = Sample::new().tree("a", "x\n").subject();
        let found = settle(&subject, vec![secret(1), secret(2).only_warn()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].finding.source_refs.len(), 2);
        assert_eq!(found[0].level, Level::Block);
    }

    #[test]
    fn what_was_accepted_is_not_raised_again_but_stays_open_where_it_was() {
        let mut subject = Sample::new().tree("a", "x\n").subject();
        let first = settle(&subject, vec![secret(1)]);
        subject.accepted_paths = ["a".parse().unwrap()].into();
        assert!(settle(&subject, vec![secret(1)]).is_empty());
        subject.open = vec![open(&first[0], "f-1", FindingStatus::Open)];
        assert_eq!(settle(&subject, vec![secret(1)])[0].finding.status, FindingStatus::Open);
    }
}
