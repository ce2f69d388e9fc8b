//! Are the places that a finding names there? The ref exists, the path is in the
//! tree or the base, the line exists, the quotation stands there.
//!
//! A finding without one valid ref is dropped and counted: it can neither block
//! nor approve. This holds for every kind of reviewer, also for one that errs.

use std::collections::BTreeSet;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{Checkpoint, EvidenceRef, SourceRef};
use checkrein_shared::tree::{Entry, Manifest, RelPath};
use serde_json::Value;

use crate::delta;
use crate::quote;

/// The largest file whose lines are looked up.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// What citations are checked against.
pub(crate) struct Sources<'a> {
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) evidence: BTreeSet<&'a EvidenceRef>,
    pub(crate) tree: &'a Manifest,
    pub(crate) base: &'a Manifest,
    record: Value,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(
        blobs: &'a dyn Blobs,
        evidence: BTreeSet<&'a EvidenceRef>,
        tree: &'a Manifest,
        base: &'a Manifest,
        checkpoint: &Checkpoint,
    ) -> Self {
        let record = serde_json::to_value(checkpoint).expect("a checkpoint that was read can be written");
        Self { blobs, evidence, tree, base, record }
    }

    /// Why a citation is invalid; `None` where it holds.
    ///
    /// # Errors
    ///
    /// The blob store does not answer. A content that is gone makes the citation invalid, no error.
    pub(crate) async fn fault(&self, source: &SourceRef) -> Result<Option<String>, blob::Error> {
        match source {
            SourceRef::Evidence(reference) => {
                let known = self.evidence.contains(reference);
                Ok((!known).then(|| format!("no evidence `{}`", quote::line(reference.as_str()))))
            }
            SourceRef::Checkpoint(field) => {
                let known = has_field(&self.record, field);
                Ok((!known).then(|| format!("the checkpoint has no `{}`", quote::line(field))))
            }
            SourceRef::File { path, line, quote } => self.file_fault(path, *line, quote.as_deref()).await,
        }
    }

    async fn file_fault(
        &self,
        path: &str,
        line: Option<u64>,
        quote: Option<&str>,
    ) -> Result<Option<String>, blob::Error> {
        let shown = quote::line(path);
        let Ok(parsed) = path.parse::<RelPath>() else { return Ok(Some(format!("`{shown}` is no path"))) };
        let entries: Vec<&Entry> = [self.tree, self.base].into_iter().filter_map(|m| m.get(&parsed)).collect();
        if entries.is_empty() {
            return Ok(Some(format!("neither tree nor base has `{shown}`")));
        }
        if line.is_none() && quote.is_none() {
            return Ok(None);
        }
        // The base counts too: what a change removed can be cited only there.
        let digests: BTreeSet<Digest> = entries.into_iter().filter_map(Entry::blob).collect();
        for digest in digests {
            match self.blobs.get(digest, FILE_BYTES_MAX).await {
                Ok(bytes) if stands_there(&bytes, line, quote) => return Ok(None),
                Ok(_) | Err(blob::Error::Missing(_) | blob::Error::Damaged { .. } | blob::Error::TooLarge { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(match (line, quote) {
            (Some(line), None) => format!("`{shown}` has no line {line}"),
            (Some(line), Some(_)) => format!("the quotation does not stand in line {line} of `{shown}`"),
            _ => format!("the quotation does not stand in `{shown}`"),
        }))
    }
}

/// Whether a line exists, and a quotation begins in it, or anywhere where no line is named.
fn stands_there(bytes: &[u8], line: Option<u64>, quote: Option<&str>) -> bool {
    let lines: Vec<String> = delta::lines(bytes).map(|l| String::from_utf8_lossy(l).into_owned()).collect();
    let Some(line) = line else {
        return quote.is_none_or(|quote| !quote.is_empty() && lines.join("\n").contains(quote));
    };
    let Some(index) = usize::try_from(line).ok().and_then(|l| l.checked_sub(1)).filter(|i| *i < lines.len()) else {
        return false;
    };
    let Some(quote) = quote else { return true };
    let count = quote.matches('\n').count() + 1;
    let end = lines.len().min(index + count);
    let text = lines[index..end].join("\n");
    text.find(quote).is_some_and(|at| !quote.is_empty() && at <= lines[index].len())
}

/// Whether a record has a field: names and numbers between slashes, or the `id` of an element of a list.
fn has_field(record: &Value, field: &str) -> bool {
    let mut at = record;
    for name in field.split('/') {
        let next = match at {
            Value::Object(map) => map.get(name),
            Value::Array(items) => {
                let by_index = name.parse::<usize>().ok().and_then(|index| items.get(index));
                by_index.or_else(|| items.iter().find(|item| item.get("id").and_then(Value::as_str) == Some(name)))
            }
            _ => None,
        };
        match next {
            Some(value) => at = value,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use checkrein_shared::blob::FsBlobs;

    use super::*;
    use crate::testing::Sample;

    #[test]
    fn lines_and_quotations_must_stand_where_they_are_said_to() {
        let text = b"fn one() {\n    two();\n}\n";
        for (line, quote, expected) in [
            (Some(1), None, true),
            (Some(3), None, true),
            (Some(4), None, false),
            (Some(0), None, false),
            (Some(2), Some("two()"), true),
            (Some(1), Some("two()"), false),
            (Some(1), Some("{\n    two();"), true),
            (Some(2), Some(""), false),
            (None, Some("two();\n}"), true),
            (None, Some("three"), false),
            (None, Some(""), false),
            (Some(u64::MAX), None, false),
        ] {
            assert_eq!(stands_there(text, line, quote), expected, "{line:?} {quote:?}");
        }
        assert!(!stands_there(b"", Some(1), None));
    }

    #[tokio::test]
    async fn citations_are_checked_against_tree_base_and_index() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FsBlobs::open(folder.path()).unwrap();
        let subject = Sample::new()
            .base("old.rs", "gone\n")
            .base("a.rs", "was\n")
            .tree("a.rs", "is\n")
            .log("log:x", "s")
            .subject();
        for text in ["gone\n", "was\n", "is\n"] {
            blobs.put(text.as_bytes()).await.unwrap();
        }
        let evidence = subject.evidence.keys().collect();
        let sources = Sources::new(&blobs, evidence, &subject.tree, &subject.base, &subject.checkpoint);
        let file = |path: &str, line, quote: Option<&str>| SourceRef::File {
            path: path.into(),
            line,
            quote: quote.map(str::to_owned),
        };
        for (source, holds) in [
            (file("a.rs", Some(1), Some("is")), true),
            (file("a.rs", Some(1), Some("was")), true),
            (file("old.rs", Some(1), Some("gone")), true),
            (file("a.rs", Some(2), None), false),
            (file("a.rs", Some(1), Some("never")), false),
            (file("src/missing.rs", None, None), false),
            (file("../etc/passwd", None, None), false),
            (SourceRef::Evidence("log:x".parse().unwrap()), true),
            (SourceRef::Evidence("log:y".parse().unwrap()), false),
            (SourceRef::Checkpoint("objective/text".into()), true),
            (SourceRef::Checkpoint("objective/verdict".into()), false),
        ] {
            assert_eq!(sources.fault(&source).await.unwrap().is_none(), holds, "{source:?}");
        }
    }

    #[test]
    fn fields_are_found_by_name_number_and_id() {
        let record = serde_json::json!({ "plan": { "hash": "x" }, "open_issues": [{ "id": "issue-3" }, 7] });
        for (field, expected) in [
            ("plan/hash", true),
            ("plan", true),
            ("plan/hash/x", false),
            ("open_issues/issue-3", true),
            ("open_issues/0/id", true),
            ("open_issues/2", false),
            ("nothing", false),
            ("", false),
        ] {
            assert_eq!(has_field(&record, field), expected, "{field}");
        }
    }
}
