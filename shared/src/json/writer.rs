//! Writes the canonical form (RFC 8785) of a value straight into a buffer.
//!
//! Only what hashed records may hold: a float or an integer beyond 2^53-1 is
//! refused, so nothing of the RFC's number formatting is needed. It copies no
//! part of the value, because everything that is stored or signed goes through here.

use std::cmp::Ordering;
use std::io::Write as _;

use serde_json::{Map, Number, Value};

use super::{Error, INTEGER_MAX};

/// Appends the canonical form of `value` to `text`. After an error a part of it may be there.
///
/// # Errors
///
/// [`Error::Canonical`] where it holds a float or an integer beyond 2^53-1.
pub fn append_canonical(value: &Value, text: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        Value::Null => text.extend_from_slice(b"null"),
        Value::Bool(true) => text.extend_from_slice(b"true"),
        Value::Bool(false) => text.extend_from_slice(b"false"),
        Value::Number(number) => append_integer(number, text)?,
        Value::String(string) => append_string(string, text),
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                append_canonical(item, text)?;
            }
            text.push(b']');
        }
        Value::Object(map) => append_object(map, text)?,
    }
    Ok(())
}

fn append_object(map: &Map<String, Value>, text: &mut Vec<u8>) -> Result<(), Error> {
    text.push(b'{');
    // How `serde_json` orders keys depends on what else is built; mostly they are in order already.
    if map.keys().is_sorted_by(|a, b| compare(a, b).is_lt()) {
        append_members(map.iter(), text)?;
    } else {
        let mut members: Vec<_> = map.iter().collect();
        members.sort_by(|(a, _), (b, _)| compare(a, b));
        append_members(members.into_iter(), text)?;
    }
    text.push(b'}');
    Ok(())
}

fn append_members<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut Vec<u8>) -> Result<(), Error> {
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        append_string(key, text);
        text.push(b':');
        append_canonical(value, text)?;
    }
    Ok(())
}

/// The RFC compares UTF-16 code units, which for ASCII is the order of bytes.
fn compare(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn append_string(string: &str, text: &mut Vec<u8>) {
    // What has to be escaped, and how, is the same in `serde_json` and in the RFC.
    serde_json::to_writer(text, string).expect("a buffer in memory takes every string");
}

fn append_integer(number: &Number, text: &mut Vec<u8>) -> Result<(), Error> {
    let integer = number.as_i64().filter(|n| n.unsigned_abs() <= INTEGER_MAX.unsigned_abs());
    let Some(integer) = integer else {
        return Err(Error::Canonical(format!("the number {number} is not an integer within 2^53-1")));
    };
    write!(text, "{integer}").map_err(|error| Error::Canonical(error.to_string()))
}
