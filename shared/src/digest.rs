//! SHA-256 digests, written `sha256:<64 lower-case hex digits>`.
//!
//! It names content. It says nothing about who wrote it: see [`crate::signing`].

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";
const TEXT_BYTES: usize = PREFIX.len() + 64;

/// The digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest(pub String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// The 64 hexadecimal digits, without the prefix.
    pub fn to_hex(self) -> String {
        self.text(|text| text[PREFIX.len()..].to_owned())
    }

    /// Twelve digits for people to read; never use them to compare.
    pub fn short(self) -> String {
        self.text(|text| text[PREFIX.len()..][..12].to_owned())
    }

    /// Records are full of digests, so their text is written without any allocation.
    fn text<T>(&self, with: impl FnOnce(&str) -> T) -> T {
        let mut text = [0; TEXT_BYTES];
        text[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        hex::encode_to_slice(self.0, &mut text[PREFIX.len()..]).expect("there are two digits for each byte");
        with(std::str::from_utf8(&text).expect("the prefix and hexadecimal digits are ASCII"))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let lower = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let mut bytes = [0; 32];
        (lower && hex::decode_to_slice(digits, &mut bytes).is_ok()).then_some(Self(bytes))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Digests bytes that arrive in pieces.
#[derive(Debug, Default, Clone)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes that were added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;
    fn try_from(value: String) -> Result<Self, InvalidDigest> {
        Self::parse(&value).ok_or(InvalidDigest(value))
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;
    fn from_str(value: &str) -> Result<Self, InvalidDigest> {
        Self::parse(value).ok_or_else(|| InvalidDigest(value.to_owned()))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(|text| f.write_str(text))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        text.parse().map_err(E::custom)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_a_round_trip_and_other_spellings_are_refused() {
        let digest = Digest::of("abc");
        let text = digest.to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse::<Digest>().unwrap(), digest);
        for bad in [text.to_uppercase(), text.replace("sha256:", ""), text.clone() + "0", text[..70].to_owned()] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
