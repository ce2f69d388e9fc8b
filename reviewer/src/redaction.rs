//! Secrets: found in what a change adds, and removed from what verifiers print.
//!
//! The shapes are [`checkrein_shared::redact`]'s; this module chooses among them
//! as the policy says, and fits them to lines of files and to outputs with a gap.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use checkrein_shared::policy::{self, RedactionPack};
use checkrein_shared::redact::{Builder, Redactor};

/// What counts as a secret.
#[derive(Clone)]
pub(crate) struct Redaction {
    /// The packs that the policy names, and its own patterns.
    redactor: Arc<Redactor>,
}

/// An output without its secrets.
#[derive(Debug)]
pub(crate) struct Clean {
    pub(crate) bytes: Vec<u8>,
    /// How many were replaced, by pattern.
    pub(crate) redactions: BTreeMap<String, u64>,
    /// How many bytes beside a gap were left out, too.
    pub(crate) dropped_bytes: u64,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}

impl Redaction {
    pub(crate) fn from_policy(written: &policy::Redaction) -> Result<Self, String> {
        let mut builder = Builder::new();
        for name in written.packs.iter().flat_map(|pack| shapes_of(*pack)) {
            builder = builder.pack(name).map_err(|e| e.to_string())?;
        }
        for pattern in &written.extra {
            builder = builder.extra(&pattern.id, &pattern.regex).map_err(|e| e.to_string())?;
        }
        Ok(Self { redactor: Arc::new(builder.build()) })
    }

    /// Everything that is known without a policy.
    #[cfg(test)]
    pub(crate) fn built_in() -> Self {
        // Compiling the patterns takes longer than most tests.
        static BUILT_IN: std::sync::LazyLock<Redaction> = std::sync::LazyLock::new(|| {
            let everything = policy::Redaction { packs: RedactionPack::ALL.to_vec(), extra: Vec::new() };
            Redaction::from_policy(&everything).unwrap()
        });
        BUILT_IN.clone()
    }

    /// The patterns that are found, each with the index of the line in which it begins.
    pub(crate) fn find_in_lines<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
        let mut text = Vec::new();
        let mut starts = Vec::new();
        for line in lines {
            starts.push(text.len());
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        let line_of = |offset: usize| starts.partition_point(|start| *start <= offset).saturating_sub(1);
        self.redactor.find(&text).into_iter().map(|hit| (hit.pattern, line_of(hit.range.start))).collect()
    }

    /// Takes secrets out of an output, also beside the gap where its middle was thrown away.
    pub(crate) fn clean_log(&self, bytes: &[u8], gap_at: Option<u64>) -> Clean {
        let Some(gap) = gap_at else {
            let clean = self.redactor.redact(bytes);
            return Clean { bytes: clean.bytes, redactions: clean.counts, dropped_bytes: 0 };
        };
        let gap = usize::try_from(gap).unwrap_or(bytes.len());
        let (clean, dropped_bytes) = self.redactor.redact_around_gap(bytes, gap, "[output left out here]");
        Clean { bytes: clean.bytes, redactions: clean.counts, dropped_bytes }
    }
}

/// The redactor's names of what a policy's pack stands for.
fn shapes_of(pack: RedactionPack) -> &'static [&'static str] {
    match pack {
        RedactionPack::ApiKeys => &["keys"],
        RedactionPack::Tokens => &["tokens", "assignments"],
        RedactionPack::PrivateKeys => &["pem"],
        RedactionPack::ConnectionStrings => &["urls"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_named_by_the_line_in_which_it_begins() {
        let key = format!("AKIA{}", "ABCDEFGHIJKLMNOP");
        let lines = ["one", "two", &key, "four"];
        let found = Redaction::built_in().find_in_lines(lines.into_iter());
        assert_eq!(found.iter().map(|(_, line)| *line).collect::<Vec<_>>(), [2]);
        assert!(Redaction::built_in().find_in_lines(std::iter::empty()).is_empty());
    }

    #[test]
    fn an_output_loses_its_secrets_and_the_broken_lines_beside_its_gap() {
        let key = format!("AKIA{}", "ABCDEFGHIJKLMNOP");
        let clean = Redaction::built_in().clean_log(format!("a {key}\nhalf-").as_bytes(), None);
        assert!(!String::from_utf8_lossy(&clean.bytes).contains(&key));
        assert_eq!(clean.redactions.values().sum::<u64>(), 1);
        let clean = Redaction::built_in().clean_log(b"whole\nhalf-half\nrest\n", Some(11));
        assert_eq!(clean.bytes, b"whole\n[output left out here]\nrest\n");
        assert_eq!(clean.dropped_bytes, 10);
    }
}
