//! The keys of a task file, as they are written. Nothing is resolved here.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::ids::StepId;
use crate::records::{Budgets, EffectClass, HomeDir, Risk};
use crate::time::Span;

/// A task for Checkrein: what is wanted, where, by which agent, and in which steps.

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// A short name for people.
    pub(super) task: String,
    /// What is to be achieved, in a sentence or two.
    pub(super) objective: Option<String>,
    /// The longer specification.
    pub(super) spec: Option<Source>,
    /// Rules that the result must keep.
    #[serde(default)]
    pub(super) constraints: Vec<Constraint>,
    /// The folder to work on, relative to this file.
    pub(super) workspace: String,
    /// The policy: a name that is built in, or a file relative to this one.
    pub(super) policy: Option<String>,
    /// Free labels, visible to policies.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    /// The agent that carries out `prompt` steps.
    pub(super) agent: Option<Agent>,
    /// The steps; without any, the agent gets the objective.
    #[serde(default)]
    pub(super) plan: Vec<Step>,
    /// Limits of this task.
    #[serde(default)]
    pub(super) budgets: Budgets,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Constraint {
    /// Its name.
    pub(super) id: String,
    /// Its version, from 1.
    pub(super) version: u64,
    /// The rule itself.
    pub(super) text: Option<String>,
    /// A file with the rule.
    pub(super) file: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    /// The program. One whose name holds a `/` is relative to this file.
    pub(super) command: Argv,
    /// Names of the environment variables that it may see; values are never stored.
    #[serde(default)]
    pub(super) env: Vec<String>,
    /// The home folder that it sees.
    #[serde(default)]
    pub(super) home: HomeDir,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Its name, unique in the plan.
    pub(super) id: StepId,
    /// A command that carries it out.
    pub(super) run: Option<Argv>,
    /// An instruction to the agent.
    pub(super) prompt: Option<String>,
    /// Steps that must be completed before.
    #[serde(default)]
    pub(super) needs: Vec<StepId>,
    /// Names of the policy's verifiers that must pass for it.
    #[serde(default)]
    pub(super) verify: Vec<String>,
    /// How much it can harm.
    #[serde(default)]
    pub(super) risk: Risk,
    /// What it does outside the scratch. A step that is not `read_only` is never run twice on a guess.
    #[serde(default)]
    pub(super) effect: EffectClass,
    /// How long its command may take.
    pub(super) timeout: Option<Span>,
    /// Whether the other side honours CHECKREIN_IDEMPOTENCY_KEY, so that the command may run again with it.
    #[serde(default)]
    pub(super) idempotent: bool,
    /// A command that tells whether the effect happened: exit code 0 says yes, 1 says no, others say nothing.
    pub(super) probe: Option<Argv>,
    /// A command that shows what the step would do; an irreversible step runs it before anybody is asked.
    pub(super) dry_run: Option<Argv>,
    /// A command that undoes the effect: shown to people, never run by itself.
    pub(super) compensate: Option<Argv>,
}

/// A command: a list is an argument vector, a text is a line for `sh -c`.
pub(super) struct Argv(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgvVisitor;
        impl<'de> Visitor<'de> for ArgvVisitor {
            type Value = Argv;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command: a list such as [make, test], or one line for the shell")
            }

            fn visit_str<E>(self, line: &str) -> Result<Argv, E> {
                Ok(Argv(vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Argv, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Argv)
            }
        }
        deserializer.deserialize_any(ArgvVisitor)
    }
}

impl JsonSchema for Argv {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A list is an argument vector; a text is a line for `sh -c`.",
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 }
            ]
        })
    }
}

impl Argv {
    /// What is wrong with it, if anything is.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let line = match self.0.as_slice() {
            [] => return Some("the command is empty"),
            [shell, flag, line] if shell == "sh" && flag == "-c" => line,
            [program, ..] => program,
        };
        if line.trim().is_empty() {
            return Some("the command is empty");
        }
        self.0.iter().any(|arg| arg.contains('\0')).then_some("the command holds a zero byte")
    }
}

/// A text: written here, or in a file.
pub(super) enum Source {
    Text(String),
    File(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceKeys {
    text: Option<String>,
    file: Option<String>,
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SourceVisitor;
        impl<'de> Visitor<'de> for SourceVisitor {
            type Value = Source;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, {text: ..} or {file: ..}")
            }

            fn visit_str<E>(self, text: &str) -> Result<Source, E> {
                Ok(Source::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Source, A::Error> {
                let keys = SourceKeys::deserialize(MapAccessDeserializer::new(entries))?;
                source(keys.text, keys.file).map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(SourceVisitor)
    }
}

impl JsonSchema for Source {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |key: &str| {
            json_schema!({
                "type": "object",
                "properties": { key: { "type": "string" } },
                "required": [key],
                "additionalProperties": false
            })
        };
        json_schema!({ "anyOf": [{ "type": "string" }, one("text"), one("file")] })
    }
}

/// Exactly one of the two.
pub(super) fn source(text: Option<String>, file: Option<String>) -> Result<Source, &'static str> {
    match (text, file) {
        (Some(text), None) => Ok(Source::Text(text)),
        (None, Some(file)) => Ok(Source::File(file)),
        _ => Err("write `text:` or `file:`, one of them"),
    }
}

/// The JSON Schema of task files, for editors.
pub fn file_schema() -> Schema {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<File>()
}
