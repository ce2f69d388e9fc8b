//! The values that expressions compute with, and the world that they see.
//!
//! Numbers are whole: a fraction in a tool's arguments is opaque, and using it
//! is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::policy::facts::Facts;

/// A value; copies are cheap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Text(Arc<str>),
    List(Arc<[Value]>),
    Map(Arc<BTreeMap<String, Value>>),
    /// What has no use in an expression: null and fractions.
    Opaque(Arc<str>),
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// What sort of value it is, for messages.
    pub(super) fn sort(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Opaque(_) => "fraction or null",
        }
    }

    fn from_json(json: Json) -> Self {
        match json {
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => number.as_i64().map_or_else(|| Self::Opaque(number.to_string().into()), Self::Int),
            Json::String(text) => Self::Text(text.into()),
            Json::Array(items) => Self::List(items.into_iter().map(Self::from_json).collect()),
            Json::Object(map) => Self::Map(Arc::new(map.into_iter().map(|(k, v)| (k, Self::from_json(v))).collect())),
            Json::Null => Self::Opaque("null".into()),
        }
    }
}

impl fmt::Display for Value {
    /// A short form for people: long texts and lists are cut, and say so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS_MAX: usize = 80;
        const ITEMS_MAX: usize = 4;
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(text) if text.chars().count() > CHARS_MAX => {
                write!(f, "{:?}..", text.chars().take(CHARS_MAX).collect::<String>())
            }
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Opaque(text) => f.write_str(text),
            Self::Map(map) => write!(f, "{{{}}}", map.keys().take(ITEMS_MAX).cloned().collect::<Vec<_>>().join(", ")),
            Self::List(items) => {
                let scalars = items.iter().all(|i| !matches!(i, Self::Map(_) | Self::List(_)));
                if !scalars || items.len() > ITEMS_MAX {
                    return write!(f, "{} items", items.len());
                }
                let shown: Vec<String> = items.iter().map(Self::to_string).collect();
                write!(f, "[{}]", shown.join(", "))
            }
        }
    }
}

/// The facts in the form that expressions read.
#[derive(Debug, Clone)]
pub(crate) struct World {
    facts: Value,
    checkpoint_hash: Arc<str>,
}

impl World {
    pub(crate) fn new(facts: &Facts) -> Self {
        let json = serde_json::to_value(facts).expect("facts are strings, integers, booleans and lists of them");
        Self { facts: Value::from_json(json), checkpoint_hash: facts.checkpoint.hash.as_str().into() }
    }

    pub(super) fn fact(&self, name: &str) -> Option<&Value> {
        match &self.facts {
            Value::Map(map) => map.get(name),
            _ => None,
        }
    }

    pub(super) fn checkpoint_hash(&self) -> &str {
        &self.checkpoint_hash
    }
}
