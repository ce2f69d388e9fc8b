//! What an agent says in its result file, turned into claims and issues.
//!
//! A claim is worth what its refs are worth: one that names nothing real has
//! the basis `absent`. A file that can't be read is an open issue, never
//! silence. This module fetches nothing and believes nothing.

use checkrein_shared::records::{
    Basis, Claim, ClaimedResult, EvidenceKind, EvidenceRef, IssueRef, ResultFile, Severity,
};

/// The most issues that are taken from one file.
const ISSUES_MAX: usize = 100;

/// The longest issue, in characters.
const ISSUE_CHARS_MAX: usize = 2_000;

/// What was made of a result file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// The claims, each with the refs that exist.
    pub(crate) claims: Vec<Claim>,
    /// What is open: the agent's own list, and what is wrong with its file.
    pub(crate) issues: Vec<IssueRef>,
}

/// What claims are checked against.
pub(crate) struct Grounds<'a> {
    /// This attempt's output, which the file calls `log:this`.
    pub(crate) log: &'a EvidenceRef,
    /// Whether a ref is in the index, or names a file of the tree.
    pub(crate) exists: &'a dyn Fn(&EvidenceRef) -> bool,
    /// Takes known secrets out of a text.
    pub(crate) redact: &'a dyn Fn(&str) -> String,
    /// Makes the names of issues unique.
    pub(crate) epoch: u64,
}

/// What an agent says in a well-formed file.
pub(crate) fn judge(file: &ResultFile, source: &EvidenceRef, grounds: &Grounds<'_>) -> Said {
    let mut said = Said::default();
    for (index, claim) in file.claims.iter().enumerate() {
        let (kept, unknown) = resolve(claim, grounds);
        if !unknown.is_empty() {
            let text = format!("claim {} names evidence that does not exist: {}", index + 1, unknown.join(", "));
            let id = format!("claim-{}-{}", grounds.epoch, index + 1);
            said.issues.push(issue(id, Severity::Low, &text, source, grounds));
        }
        let basis = if kept.is_empty() { Basis::Absent } else { Basis::SelfReported };
        said.claims.push(Claim { text: (grounds.redact)(&claim.text), refs: kept, basis });
    }
    for (index, text) in file.open_issues.iter().take(ISSUES_MAX).enumerate() {
        let id = format!("agent-{}-{}", grounds.epoch, index + 1);
        said.issues.push(issue(id, Severity::Medium, text, source, grounds));
    }
    if file.open_issues.len() > ISSUES_MAX {
        let text = format!("the result file lists {} issues; {ISSUES_MAX} are shown", file.open_issues.len());
        let id = format!("agent-{}-more", grounds.epoch);
        said.issues.push(issue(id, Severity::Medium, &text, source, grounds));
    }
    said
}

/// A file that was refused: its claims are ignored, and the checkpoint says so.
pub(crate) fn refused(why: &str, source: Option<&EvidenceRef>, grounds: &Grounds<'_>) -> Said {
    let text = format!("the agent's result file was ignored: {why}");
    let refs = source.map_or(grounds.log, |source| source);
    let id = format!("result-file-{}", grounds.epoch);
    Said { claims: Vec::new(), issues: vec![issue(id, Severity::Medium, &text, refs, grounds)] }
}

fn resolve(claim: &ClaimedResult, grounds: &Grounds<'_>) -> (Vec<EvidenceRef>, Vec<String>) {
    let mut kept: Vec<EvidenceRef> = Vec::new();
    let mut unknown = Vec::new();
    for reference in &claim.refs {
        let this = reference.kind() == EvidenceKind::Log && reference.name() == "this";
        let reference = if this { grounds.log } else { reference };
        if !(grounds.exists)(reference) {
            unknown.push(format!("`{reference}`"));
        } else if !kept.contains(reference) {
            kept.push(reference.clone());
        }
    }
    (kept, unknown)
}

fn issue(id: String, severity: Severity, text: &str, source: &EvidenceRef, grounds: &Grounds<'_>) -> IssueRef {
    let text = (grounds.redact)(text).chars().take(ISSUE_CHARS_MAX).collect();
    IssueRef { id, severity, text, refs: vec![source.clone()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> EvidenceRef {
        text.parse().unwrap()
    }

    fn with_grounds<T>(run: impl FnOnce(&Grounds<'_>) -> T) -> T {
        let log = reference("log:fix-3");
        let exists = |r: &EvidenceRef| ["log:fix-3", "diff:cs-1", "file:src/a.rs"].contains(&r.as_str());
        let redact = |text: &str| text.replace("hunter2", "[redacted]");
        run(&Grounds { log: &log, exists: &exists, redact: &redact, epoch: 3 })
    }

    #[test]
    fn a_claim_is_worth_what_its_refs_are_worth() {
        let file = ResultFile::parse(
            br#"{"version":1,"claims":[
                {"text":"fixed with hunter2","refs":["file:src/a.rs","log:this","log:fix-3"]},
                {"text":"tests pass","refs":["test:unit-9","file:/etc/passwd"]},
                {"text":"trust me"}],"open_issues":["Windows untested"]}"#,
        )
        .unwrap();
        let said = with_grounds(|grounds| judge(&file, &reference("result:fix-3"), grounds));
        assert_eq!(said.claims[0].refs, [reference("file:src/a.rs"), reference("log:fix-3")]);
        assert_eq!(said.claims[0].text, "fixed with [redacted]");
        let bases: Vec<Basis> = said.claims.iter().map(|c| c.basis).collect();
        assert_eq!(bases, [Basis::SelfReported, Basis::Absent, Basis::Absent]);
        let ids: Vec<&str> = said.issues.iter().map(|i| i.id.as_str()).collect();
        assert_eq!(ids, ["claim-3-2", "agent-3-1"]);
        assert!(said.issues[0].text.contains("`test:unit-9`"));
    }

    #[test]
    fn a_refused_file_is_an_open_issue() {
        let said = with_grounds(|grounds| refused("not strict JSON", None, grounds));
        assert!(said.claims.is_empty());
        assert!(said.issues[0].text.contains("not strict JSON"));
        assert_eq!(said.issues[0].refs, [reference("log:fix-3")]);
    }

    #[test]
    fn issues_are_bounded() {
        let file = ResultFile { version: 1, claims: Vec::new(), open_issues: vec!["x".repeat(9_000); 500] };
        let said = with_grounds(|grounds| judge(&file, &reference("result:fix-3"), grounds));
        assert_eq!(said.issues.len(), ISSUES_MAX + 1);
        assert!(said.issues.iter().all(|i| i.text.chars().count() <= ISSUE_CHARS_MAX));
    }
}
