//! Reads a [`Node`] into any serde type, with located errors.
//!
//! Types never bend: text is no number and no boolean. (A plain whole number
//! is good as text, so that `[make, -j, 2]` works.)

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{Entry, Kind, Node, Place, Segment};
use crate::policy::nearest;

/// What was wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeError {
    pub(crate) at: Option<Place>,
    /// From the root of the tree that was read.
    pub(crate) path: Vec<Segment>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Reads a node.
pub(crate) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, NodeError> {
    T::deserialize(Reader(node))
}

impl NodeError {
    fn plain(message: String, hint: Option<String>) -> Self {
        Self { at: None, path: Vec::new(), message, hint }
    }

    fn at(mut self, at: Place) -> Self {
        self.at.get_or_insert(at);
        self
    }

    fn within(mut self, segment: Segment) -> Self {
        self.path.insert(0, segment);
        self
    }

    /// The path as people write it: `rules[2].limit`.
    pub(crate) fn path_text(&self) -> String {
        let mut text = String::new();
        for segment in &self.path {
            match segment {
                Segment::Key(key) if text.is_empty() => text.push_str(key),
                Segment::Key(key) => text.extend([".", key]),
                Segment::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NodeError {}

impl de::Error for NodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::plain(message.to_string(), None)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::plain(format!("unknown key `{field}`"), nearest::hint(field, expected.iter().copied()))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::plain(format!("unknown value `{variant}`"), nearest::hint(variant, expected.iter().copied()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::plain(format!("`{field}` is missing"), None)
    }
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Node);

impl Reader<'_> {
    fn mismatch(self, expected: &str) -> NodeError {
        let raw = &self.0.raw;
        let (found, hint) = match &self.0.kind {
            Kind::Bool(value) => {
                (format!("the boolean `{value}`"), Some(format!("write \"{value}\" in quotes for text")))
            }
            Kind::Int(value) => (format!("the number {value}"), None),
            Kind::OddNumber => (format!("`{raw}`"), Some("write numbers in plain digits, and texts in quotes".into())),
            Kind::Text(_) => (format!("the text `{raw}`"), None),
            Kind::List(_) => ("a list".to_owned(), None),
            Kind::Map(_) => ("a mapping".to_owned(), None),
        };
        let hint = match (expected, &self.0.kind) {
            ("true or false", _) => None,
            ("a whole number", Kind::Text(_)) => Some("write plain digits, without quotes or separators".to_owned()),
            ("a list", Kind::Text(_)) => Some("put it in brackets: [..]".to_owned()),
            _ => hint,
        };
        NodeError::plain(format!("expected {expected}, found {found}"), hint).at(self.0.at)
    }

    fn int(self) -> Result<i64, NodeError> {
        match self.0.kind {
            Kind::Int(value) => Ok(value),
            _ => Err(self.mismatch("a whole number")),
        }
    }

    fn text(self) -> Result<String, NodeError> {
        match &self.0.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Int(value) => Ok(value.to_string()),
            _ => Err(self.mismatch("text")),
        }
    }

    fn located<T>(self, result: Result<T, NodeError>) -> Result<T, NodeError> {
        result.map_err(|error| error.at(self.0.at))
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
            let value = self.int()?;
            self.located(visitor.visit_i64(value))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = NodeError;

    integers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.0.kind {
            Kind::Bool(value) => self.located(visitor.visit_bool(*value)),
            Kind::Int(value) => self.located(visitor.visit_i64(*value)),
            Kind::Text(text) => self.located(visitor.visit_str(text)),
            Kind::OddNumber => Err(self.mismatch("a plain value")),
            Kind::List(_) => self.deserialize_seq(visitor),
            Kind::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.0.kind {
            Kind::Bool(value) => self.located(visitor.visit_bool(value)),
            _ => Err(self.mismatch("true or false")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        let text = self.text()?;
        self.located(visitor.visit_string(text))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        // An empty value is no value: the parser has refused it already.
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.0.kind {
            Kind::List(items) => self.located(visitor.visit_seq(Items { items: items.iter().enumerate() })),
            _ => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.0.kind {
            Kind::Map(entries) => self.located(visitor.visit_map(Entries { entries: entries.iter(), current: None })),
            _ => Err(self.mismatch("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NodeError> {
        self.located(visitor.visit_newtype_struct(self))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        let text = self.text()?;
        let word: StrDeserializer<'_, NodeError> = text.as_str().into_deserializer();
        self.located(visitor.visit_enum(word))
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = NodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NodeError> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        seed.deserialize(Reader(node)).map(Some).map_err(|e| e.at(node.at).within(Segment::Index(index)))
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = NodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NodeError> {
        self.current = self.entries.next();
        let Some(entry) = self.current else { return Ok(None) };
        let key: StrDeserializer<'_, NodeError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|e| e.at(entry.at).within(Segment::Key(entry.key.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NodeError> {
        let entry = self.current.take().expect("serde asks for a value only after its key");
        seed.deserialize(Reader(&entry.value)).map_err(|e| e.at(entry.value.at).within(Segment::Key(entry.key.clone())))
    }
}
