//! Evidence: artifacts in the blob store, named by refs such as
//! `diff:cs-7k3m9qfx-0007`, and the index that says what each ref is.
//!
//! The index is a blob itself. It names only what is new since its
//! predecessor, so that a long task's evidence grows linearly.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scale::Role;
use crate::digest::Digest;
use crate::ids::{InstanceId, StepId};
use crate::time::Timestamp;

/// The name of an artifact: `<kind>:<name>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EvidenceRef {
    kind: EvidenceKind,
    text: String,
}

/// Text that is no evidence ref.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an evidence ref: write `<kind>:<name>`, such as `diff:cs-7k3m9qfx-0007`; kinds are {kinds}", kinds = EvidenceKind::NAMES.join(", "))]
pub struct InvalidEvidenceRef(pub String);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What sort of artifact a ref names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EvidenceKind {
            $($(#[$doc])* $name,)*
        }

        impl EvidenceKind {
            /// Every kind's name.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// The name as written before the colon.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A readable difference of two trees.
    Diff = "diff",
    /// The changeset itself, as a record.
    Changeset = "changeset",
    /// The outcome of a verifier or a test command.
    Test = "test",
    /// Output of a command or an agent.
    Log = "log",
    /// What one tool call returned.
    Tool = "tool",
    /// A report that a step wrote.
    Report = "report",
    /// The agent's result file, redacted.
    Result = "result",
    /// A person's approval.
    Approval = "approval",
    /// A source file at a checkpoint: `file:<path>`.
    File = "file",
}

/// The longest name of a ref, in bytes.
const NAME_BYTES_MAX: usize = 512;

impl EvidenceRef {
    /// Makes a ref.
    ///
    /// # Errors
    ///
    /// [`InvalidEvidenceRef`] where `name` is empty, too long or holds control characters.
    pub fn new(kind: EvidenceKind, name: &str) -> Result<Self, InvalidEvidenceRef> {
        format!("{}:{name}", kind.as_str()).parse()
    }

    /// What sort of artifact this names.
    pub fn kind(&self) -> EvidenceKind {
        self.kind
    }

    /// The part after the colon.
    pub fn name(&self) -> &str {
        &self.text[self.kind.as_str().len() + 1..]
    }

    /// The whole ref.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for EvidenceRef {
    type Error = InvalidEvidenceRef;
    fn try_from(text: String) -> Result<Self, InvalidEvidenceRef> {
        let kind = text.split_once(':').and_then(|(kind, name)| {
            let named = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
            EvidenceKind::parse(kind).filter(|_| named)
        });
        match kind {
            Some(kind) => Ok(Self { kind, text }),
            None => Err(InvalidEvidenceRef(text)),
        }
    }
}

impl FromStr for EvidenceRef {
    type Err = InvalidEvidenceRef;
    fn from_str(value: &str) -> Result<Self, InvalidEvidenceRef> {
        Self::try_from(value.to_owned())
    }
}

impl From<EvidenceRef> for String {
    fn from(reference: EvidenceRef) -> String {
        reference.text
    }
}

impl fmt::Display for EvidenceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonSchema for EvidenceRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EvidenceRef".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let pattern = format!("^({}):.{{1,512}}$", EvidenceKind::NAMES.join("|"));
        schemars::json_schema!({ "type": "string", "pattern": pattern })
    }
}

/// Who made an artifact: a worker's claim and a reviewer's own run are different evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// The role.
    pub role: Role,
    /// The process.
    pub instance: InstanceId,
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The digest of its bytes as stored (after redaction).
    pub digest: Digest,
    /// Its size in bytes as stored.
    pub size: u64,
    /// Its media type, such as `text/x-diff`.
    pub media_type: String,
    /// Who made it.
    pub produced_by: Producer,
    /// The step it belongs to.
    pub step: Option<StepId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// How many secrets were replaced, by pattern.
    pub redactions: BTreeMap<String, u64>,
    /// How many bytes were left out beyond the output cap.
    pub dropped_bytes: u64,
}

/// What each ref of a task is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceIndex {
    /// The blob of the index before this one.
    pub previous: Option<Digest>,
    /// What is new since then.
    pub entries: BTreeMap<EvidenceRef, Evidence>,
}

/// The outcome of a command that tests something; the content of `test:` evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRun {
    /// The command.
    pub command: Vec<String>,
    /// The tree that it ran on.
    pub tree: Digest,
    /// Its exit code; `None` where a signal or the time limit ended it.
    pub exit_code: Option<i64>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// How long it ran.
    pub duration_ms: u64,
    /// Its output.
    pub log: EvidenceRef,
}

impl TestRun {
    /// Whether it ended with exit code 0.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }
}
