//! Strict JSON in, canonical JSON (RFC 8785) out, and the digests of records.
//!
//! Parsing refuses what would make two readers disagree: duplicate keys,
//! integers beyond 2^53-1, lone surrogates, and nesting deeper than
//! [`DEPTH_MAX`]. Hashed records hold no floating-point numbers. This module
//! does not depend on the order in which `serde_json` keeps keys.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use crate::digest::Digest;

mod writer;

pub use writer::append_canonical;

/// The deepest nesting that is accepted.
pub const DEPTH_MAX: usize = 64;

/// The largest integer that every JSON reader agrees about: 2^53 - 1.
pub const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// Why a text was refused, or a record could not be hashed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not strict JSON.
    #[error("not strict JSON: {0}")]
    Syntax(#[source] serde_json::Error),
    /// The JSON is well-formed but is not such a record.
    #[error("not a valid {what}: {source}")]
    Shape {
        /// The record that was expected.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The value can't be written in canonical form.
    #[error("can't be written as canonical JSON: {0}")]
    Canonical(String),
}

/// Parses strict JSON.
///
/// # Errors
///
/// [`Error::Syntax`] with line and column.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer).map_err(Error::Syntax)?;
    deserializer.end().map_err(Error::Syntax)?;
    Ok(value)
}

/// Parses strict JSON into a record.
///
/// # Errors
///
/// [`Error::Syntax`] or [`Error::Shape`], which names `what`.
pub fn parse_as<T: DeserializeOwned>(what: &'static str, text: &[u8]) -> Result<T, Error> {
    let value = parse(text)?;
    T::deserialize(value).map_err(|source| Error::Shape { what, source })
}

/// The canonical bytes of a record: RFC 8785, no floating-point numbers.
///
/// # Errors
///
/// [`Error::Canonical`] where the record holds a float, an integer beyond 2^53-1 or a key that is no string.
pub fn canonical<T: Serialize + ?Sized>(record: &T) -> Result<Vec<u8>, Error> {
    let value = serde_json::to_value(record).map_err(|e| Error::Canonical(e.to_string()))?;
    let mut text = Vec::with_capacity(256);
    append_canonical(&value, &mut text)?;
    Ok(text)
}

/// The digest of a record's canonical bytes.
///
/// # Errors
///
/// As [`canonical`].
pub fn digest<T: Serialize + ?Sized>(record: &T) -> Result<Digest, Error> {
    Ok(Digest::of(canonical(record)?))
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH_MAX {
            return Err(E::custom(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX.unsigned_abs() {
            return Err(E::custom(format!("the integer {value} is beyond 2^53-1")));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        let signed = i64::try_from(value).map_err(|_| E::custom(format!("the integer {value} is beyond 2^53-1")))?;
        self.visit_i64(signed)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // A whole number beyond u64 arrives here as a float: it has lost digits already.
        if value.fract() == 0.0 && value.abs() > INTEGER_MAX as f64 {
            return Err(E::custom(format!("the number {value} is beyond 2^53-1")));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(serde::de::Error::custom(format!("the key `{key}` stands twice in one object")));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"x":{"a":1,"\u0061":2}}"#,
            "9007199254740992",
            "-9007199254740992",
            "18446744073709551616",
            "1e400",
            "NaN",
            r#""\ud83c""#,
            "1 2",
            "",
            "{\"a\":1,}",
            &deep,
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn errors_name_line_and_key() {
        let error = parse(b"{\n \"rule\": 1,\n \"rule\": 2}").unwrap_err().to_string();
        assert!(error.contains("`rule`") && error.contains("line 3"), "{error}");
    }

    #[test]
    fn floats_never_reach_a_hash() {
        assert!(canonical(&json!({ "a": 0.5 })).is_err());
        assert!(canonical(&json!({ "a": u64::MAX })).is_err());
    }

    #[test]
    fn keys_are_in_the_order_of_utf_16_whatever_order_they_come_in() {
        let value = json!({ "\u{1f600}": 1, "\u{e000}": 2, "z": 3, "é": 4, "a": 5, "": 6 });
        let text = String::from_utf8(canonical(&value).unwrap()).unwrap();
        assert_eq!(text, "{\"\":6,\"a\":5,\"z\":3,\"é\":4,\"\u{1f600}\":1,\"\u{e000}\":2}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-INTEGER_MAX..=INTEGER_MAX).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6).prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_parses_back_to_the_same_value(value in values()) {
            let text = canonical(&value).unwrap();
            let again = parse(&text).unwrap();
            prop_assert_eq!(&again, &value);
            prop_assert_eq!(canonical(&again).unwrap(), text);
        }

        #[test]
        fn canonical_text_is_that_of_another_implementation(value in values()) {
            prop_assert_eq!(canonical(&value).unwrap(), serde_json_canonicalizer::to_vec(&value).unwrap());
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
