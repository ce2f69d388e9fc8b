//! Triggers as they are written: one key for each, and two intervals beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::records::Trigger;
use crate::time::Span;

/// When one trigger fires.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerFile {
    /// Whether a checkpoint is written.
    pub on: Option<bool>,
    /// Whether the worker parks until a decision.
    pub gate: Option<bool>,
    /// It fires only where this holds.
    pub when: Option<String>,
    /// Thresholds in per cent, for `budget.threshold` and `context.health_low`.
    pub at: Option<Vec<u32>>,
}

/// The section `triggers`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggersFile {
    /// Each trigger that is mentioned.
    pub by_name: BTreeMap<Trigger, TriggerFile>,
    /// Checkpoints that are no gates are at least this far apart.
    pub min_interval: Option<Span>,
    /// A checkpoint is written after this long, whatever happened.
    pub max_interval: Option<Span>,
}

const MIN_INTERVAL: &str = "min_interval";
const MAX_INTERVAL: &str = "max_interval";

/// Every key of the section: the triggers' names, then the intervals.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Trigger::ALL.iter().map(|t| t.as_str()).chain([MIN_INTERVAL, MAX_INTERVAL]).collect());

/// A key of the section.
enum Key {
    Trigger(Trigger),
    MinInterval,
    MaxInterval,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            MIN_INTERVAL => Ok(Self::MinInterval),
            MAX_INTERVAL => Ok(Self::MaxInterval),
            name => Trigger::parse(name).map(Self::Trigger).ok_or_else(|| de::Error::unknown_field(name, &KEYS)),
        }
    }
}

impl<'de> Deserialize<'de> for TriggersFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TriggersVisitor;
        impl<'de> Visitor<'de> for TriggersVisitor {
            type Value = TriggersFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of triggers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TriggersFile, A::Error> {
                let mut section = TriggersFile::default();
                while let Some(key) = entries.next_key()? {
                    match key {
                        Key::Trigger(trigger) => {
                            section.by_name.insert(trigger, entries.next_value()?);
                        }
                        Key::MinInterval => section.min_interval = Some(entries.next_value()?),
                        Key::MaxInterval => section.max_interval = Some(entries.next_value()?),
                    }
                }
                Ok(section)
            }
        }
        deserializer.deserialize_map(TriggersVisitor)
    }
}

impl JsonSchema for TriggersFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Triggers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for trigger in Trigger::ALL {
            let schema = generator.subschema_for::<TriggerFile>();
            properties.insert(trigger.as_str().to_owned(), schema.into());
        }
        for interval in [MIN_INTERVAL, MAX_INTERVAL] {
            properties.insert(interval.to_owned(), generator.subschema_for::<Span>().into());
        }
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}
