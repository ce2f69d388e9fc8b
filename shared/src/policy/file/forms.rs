//! Values that can be written in more than one form.
//!
//! Each is read by hand: an untagged enum would hide what is wrong.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A command: a list of arguments, or a text for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(Vec<String>);

impl Command {
    /// The argument vector; never empty.
    pub fn argv(&self) -> &[String] {
        &self.0
    }

    fn new<E: de::Error>(argv: Vec<String>) -> Result<Self, E> {
        match argv.first() {
            None => Err(E::custom("the command is empty")),
            Some(program) if program.trim().is_empty() => Err(E::custom("the command's program is empty")),
            Some(_) if argv.iter().any(|a| a.contains('\0')) => Err(E::custom("a command can't hold a NUL character")),
            Some(_) => Ok(Self(argv)),
        }
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CommandVisitor;
        impl<'de> Visitor<'de> for CommandVisitor {
            type Value = Command;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of arguments or a text for `sh -c`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Command, E> {
                if text.trim().is_empty() {
                    return Err(E::custom("the command is empty"));
                }
                Command::new(vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Command, A::Error> {
                let mut argv = Vec::new();
                while let Some(item) = items.next_element::<String>()? {
                    argv.push(item);
                }
                Command::new(argv)
            }
        }
        deserializer.deserialize_any(CommandVisitor)
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for Command {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A list of arguments, or a text for `sh -c`.",
            "oneOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": ["string", "integer"] }, "minItems": 1 }
            ]
        })
    }
}

/// How many of a review's verdicts must approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quorum {
    /// All of them.
    #[default]
    All,
    /// At least so many.
    Count(u32),
}

impl Quorum {
    /// The number of approvals that `count` reviewers must give; at least one.
    pub fn of(self, count: u32) -> u32 {
        match self {
            Self::All => count.max(1),
            Self::Count(quorum) => quorum.max(1),
        }
    }
}

impl<'de> Deserialize<'de> for Quorum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct QuorumVisitor;
        impl Visitor<'_> for QuorumVisitor {
            type Value = Quorum;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 1, or `all`")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quorum, E> {
                let count = u32::try_from(value).ok().filter(|count| *count > 0);
                count.map(Quorum::Count).ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quorum, E> {
                self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quorum, E> {
                match text {
                    "all" => Ok(Quorum::All),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(QuorumVisitor)
    }
}

impl Serialize for Quorum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Count(count) => serializer.serialize_u32(*count),
        }
    }
}

impl JsonSchema for Quorum {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quorum".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [{ "const": "all" }, { "type": "integer", "minimum": 1 }] })
    }
}

/// Who carries out a retry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum With {
    /// The same agent goes on with its conversation.
    #[default]
    Same,
    /// The same agent starts a fresh conversation.
    Fresh,
    /// Another agent, by its name in the settings.
    Agent(String),
}

/// Text that names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `same`, `fresh` nor an agent's name (letters, digits, `.`, `_` and `-`)")]
pub struct InvalidWith(pub String);

impl TryFrom<String> for With {
    type Error = InvalidWith;
    fn try_from(text: String) -> Result<Self, InvalidWith> {
        match text.as_str() {
            "same" => Ok(Self::Same),
            "fresh" => Ok(Self::Fresh),
            name if super::super::name::is_valid(name) => Ok(Self::Agent(text)),
            _ => Err(InvalidWith(text)),
        }
    }
}

impl From<With> for String {
    fn from(with: With) -> String {
        match with {
            With::Same => "same".to_owned(),
            With::Fresh => "fresh".to_owned(),
            With::Agent(name) => name,
        }
    }
}

impl JsonSchema for With {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "With".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "`same`, `fresh` or the name of another agent." })
    }
}
