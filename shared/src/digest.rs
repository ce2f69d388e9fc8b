//! SHA-256 digests, written `sha256:<64 lower-case hex digits>`.
//!
//! It names content. It says nothing about who wrote it: see [`crate::signing`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
        hex::encode(self.0)
    }

    /// Twelve digits for people to read; never use them to compare.
    pub fn short(self) -> String {
        self.to_hex()[..12].to_owned()
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
        let parsed = value.strip_prefix("sha256:").and_then(|digits| {
            let lower = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let mut bytes = [0u8; 32];
            (lower && hex::decode_to_slice(digits, &mut bytes).is_ok()).then_some(Self(bytes))
        });
        parsed.ok_or(InvalidDigest(value))
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;
    fn from_str(value: &str) -> Result<Self, InvalidDigest> {
        Self::try_from(value.to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str("sha256:")?;
        f.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
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
