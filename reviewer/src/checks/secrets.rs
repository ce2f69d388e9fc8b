//! Secrets in what a change adds. The finding names place and pattern, never the secret.

use std::collections::BTreeSet;

use checkrein_shared::records::Severity;

use crate::check::{Check, Raised, line_of};
use crate::delta::Delta;
use crate::quote;
use crate::redaction::Redaction;
use crate::subject::Subject;

/// The most lines of one file that are cited.
const REFS_MAX: usize = 10;

/// No secrets in added lines.
pub(super) fn secrets(subject: &Subject) -> Vec<Raised> {
    subject.deltas.iter().filter_map(|delta| in_file(&subject.settings.redaction, delta)).collect()
}

fn in_file(redaction: &Redaction, delta: &Delta) -> Option<Raised> {
    let mut patterns = BTreeSet::new();
    let mut lines = BTreeSet::new();
    for block in blocks(delta) {
        for (pattern, line) in redaction.find_in_lines(block.iter().map(|line| line.text.as_str())) {
            patterns.insert(pattern);
            lines.insert(block[line].number);
        }
    }
    if lines.is_empty() {
        return None;
    }
    let path = &delta.path;
    let kinds = quote::list(&patterns);
    let claim = format!("{} added lines of `{path}` look like secrets: {kinds}", lines.len());
    let refs = lines.iter().take(REFS_MAX).map(|line| line_of(path, *line)).collect();
    Some(Raised::new(Check::Secrets, Severity::Critical, claim, refs).act(format!(
        "Take the secret out of `{path}` and read it from the environment; if it was real, have it revoked."
    )))
}

/// Added lines that follow one another: a key in a file takes several.
fn blocks(delta: &Delta) -> Vec<&[crate::delta::Line]> {
    delta.added.chunk_by(|one, next| one.number + 1 == next.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    /// Put together here, so that this file itself holds nothing that looks like a secret.
    fn key() -> String {
        format!("AKIA{}", "ABCDEFGHIJKLMNOP")
    }

    #[test]
    fn secrets_in_added_lines_are_raised_without_being_repeated() {
        let text = format!("one\naws = \"{}\"\n", key());
        let raised = secrets(&Sample::new().tree("config.py", &text).subject());
        assert_eq!(raised.len(), 1);
        assert_eq!(raised[0].refs, [line_of("config.py", 2)]);
        assert!(!format!("{raised:?}").contains(&key()));
    }

    #[test]
    fn keys_that_take_several_lines_are_found() {
        let begin = format!("-----BEGIN {} KEY-----", "RSA PRIVATE");
        let end = format!("-----END {} KEY-----", "RSA PRIVATE");
        let body = "MIIEpAIBAAKCAQEA7n2k3o8v1c5y9w0z\n".repeat(6);
        let raised = secrets(&Sample::new().tree("id", &format!("{begin}\n{body}{end}\n")).subject());
        assert_eq!(raised.len(), 1, "{raised:?}");
    }

    #[test]
    fn what_was_there_before_and_what_only_looks_alike_is_not_raised() {
        let old = format!("aws = \"{}\"\n", key());
        let new = format!("{old}more\n");
        assert!(secrets(&Sample::new().base("a", &old).tree("a", &new).subject()).is_empty());
        for near in ["8d74fd8c0e7b9a4f5d6e7f8091a2b3c4d5e6f708", "018f3f5e-7b1a-7c3d-9e2f-1a2b3c4d5e6f", "AKIA"] {
            assert!(secrets(&Sample::new().tree("a", &format!("{near}\n")).subject()).is_empty(), "{near}");
        }
    }
}
