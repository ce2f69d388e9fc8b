//! The smaller sections as they are written.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::policy::words::{ApplyTo, ApplyWhen, CheckMode, Confinement, InheritBase, RedactionPack};
use crate::time::Span;

/// A rule that every result must keep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstraintFile {
    /// Its name.
    pub id: String,
    /// Its version, from 1; a policy that extends this one may only raise it.
    #[schemars(range(min = 1))]
    pub version: u32,
    /// The rule itself.
    #[serde(default)]
    pub text: Option<String>,
    /// A file beside the policy that holds it.
    #[serde(default)]
    pub file: Option<String>,
}

/// The section `workspace`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceFile {
    /// Paths whose change is always shown; they add to the parent's.
    pub protect: Vec<String>,
    /// Paths taken from the target at base, read-only, into every scratch; they add to the parent's.
    pub carry: Vec<String>,
    /// When changesets are applied.
    pub apply: Option<ApplyWhen>,
    /// Where they are applied.
    pub to: Option<ApplyTo>,
    /// Whether each applied changeset becomes a commit.
    pub commit: Option<bool>,
    /// Whether confinement is required.
    pub confinement: Option<Confinement>,
}

/// The section `inherit`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InheritFile {
    /// How much of the base must be unchanged.
    pub base: Option<InheritBase>,
    /// Paths whose change in the base does not matter.
    pub except: Option<Vec<String>>,
}

/// The section `budgets`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsFile {
    /// For a whole task.
    pub task: LimitsFile,
    /// For one step.
    pub step: LimitsFile,
    /// For the reviews of a task.
    pub review: LimitsFile,
}

/// Limits; what is left out everywhere is not limited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFile {
    /// Model turns.
    pub turns: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Cost in millionths of the account's currency.
    pub cost_micros: Option<u64>,
    /// Time under lease.
    pub wall: Option<Span>,
    /// Review rounds.
    pub rounds: Option<u64>,
}

/// The section `redaction`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedactionFile {
    /// Built-in sets of patterns; they add to the parent's.
    pub packs: Vec<RedactionPack>,
    /// Further patterns; they add to the parent's.
    pub extra: Vec<PatternFile>,
}

/// A pattern of text to remove.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatternFile {
    /// Its name, which stands where the text was.
    pub id: String,
    /// The regular expression.
    pub regex: String,
}

/// The section `retention`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionFile {
    /// How long a finished task is kept.
    pub done: Option<Span>,
}

/// What a check does: a word, or a mapping where it has options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckFile {
    /// What its findings do.
    pub mode: Option<CheckMode>,
    /// For `size`: the most files that a change may touch.
    pub files: Option<u32>,
    /// For `size`: the most lines that a change may add and remove.
    pub lines: Option<u32>,
}

/// The mapping form of [`CheckFile`].
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CheckOptions {
    mode: Option<CheckMode>,
    files: Option<u32>,
    lines: Option<u32>,
}

impl<'de> Deserialize<'de> for CheckFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CheckVisitor;
        impl<'de> Visitor<'de> for CheckVisitor {
            type Value = CheckFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("off, warn, block or a mapping")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CheckFile, E> {
                let mode = CheckMode::deserialize(StrDeserializer::new(text))?;
                Ok(CheckFile { mode: Some(mode), ..CheckFile::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<CheckFile, A::Error> {
                let CheckOptions { mode, files, lines } =
                    CheckOptions::deserialize(MapAccessDeserializer::new(entries))?;
                Ok(CheckFile { mode, files, lines })
            }
        }
        deserializer.deserialize_any(CheckVisitor)
    }
}

impl JsonSchema for CheckFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Check".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<CheckMode>();
        let options = generator.subschema_for::<CheckOptions>();
        json_schema!({ "oneOf": [word, options] })
    }
}
