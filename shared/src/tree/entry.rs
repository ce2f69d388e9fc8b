//! What stands at a path: a file or a symbolic link, with everything that counts.
//!
//! Directories exist only through what they hold, as in git: an empty one is not
//! part of a tree. Owners, times and extended attributes do not count either.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::escape;
use crate::digest::Digest;

/// What stands at a path of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A regular file.
    File {
        /// The digest of its bytes.
        digest: Digest,
        /// Its size in bytes.
        size: u64,
        /// Its permission bits.
        mode: Mode,
        /// Whether its bytes are in the blob store.
        content: Content,
    },
    /// A symbolic link; it is never followed.
    Symlink {
        /// Where it points, as written.
        target: LinkTarget,
    },
}

/// Whether a file's bytes are in the blob store, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// They are, under the file's digest.
    Stored,
    /// They are not, because its name says that it holds secrets.
    Sealed,
    /// They are not, because it is larger than the cap.
    Large,
}

/// Permission bits, setuid, setgid and sticky included; as text four octal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mode(u32);

/// Where a symbolic link points: any bytes without NUL, at most 4096.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkTarget(Box<[u8]>);

/// Text or bytes that are no mode or no link target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a {kind}")]
pub struct InvalidEntry {
    /// What was expected.
    pub kind: &'static str,
    /// What was given, escaped and shortened.
    pub value: String,
}

impl Entry {
    /// Whether both are the same to a person: where the bytes are stored does not matter.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { digest, size, mode, content: _ },
                Self::File { digest: digest_b, size: size_b, mode: mode_b, content: _ },
            ) => (digest, size, mode) == (digest_b, size_b, mode_b),
            _ => self == other,
        }
    }

    /// The digest of its content: of a file's bytes, or of where a link points.
    pub fn content_digest(&self) -> Digest {
        match self {
            Self::File { digest, .. } => *digest,
            Self::Symlink { target } => Digest::of(target.as_bytes()),
        }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            Self::Symlink { target } => target.as_bytes().len() as u64,
        }
    }

    /// A file's permission bits; links have none.
    pub fn mode(&self) -> Option<Mode> {
        match self {
            Self::File { mode, .. } => Some(*mode),
            Self::Symlink { .. } => None,
        }
    }

    /// The digest under which a blob store has its bytes, where it has.
    pub fn blob(&self) -> Option<Digest> {
        match self {
            Self::File { digest, content: Content::Stored, .. } => Some(*digest),
            _ => None,
        }
    }
}

impl Mode {
    /// The twelve low bits of what the file system says.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits & 0o7777)
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether its owner may execute the file.
    pub fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mode({self})")
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> String {
        mode.to_string()
    }
}

impl TryFrom<String> for Mode {
    type Error = InvalidEntry;
    fn try_from(text: String) -> Result<Self, InvalidEntry> {
        let octal = text.len() == 4 && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
        let bits = octal.then(|| u32::from_str_radix(&text, 8).ok()).flatten();
        let value = text.chars().take(20).collect();
        bits.map(Self).ok_or(InvalidEntry { kind: "mode of four octal digits", value })
    }
}

impl LinkTarget {
    /// Checks bytes, as the file system has them.
    ///
    /// # Errors
    ///
    /// [`InvalidEntry`] where they are empty, hold a NUL or are more than 4096.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidEntry> {
        let bytes = bytes.into();
        if bytes.is_empty() || bytes.len() > 4096 || bytes.contains(&0) {
            let value = escape::encode(&bytes[..bytes.len().min(200)]);
            return Err(InvalidEntry { kind: "link target of 1 to 4096 bytes", value });
        }
        Ok(Self(bytes.into_boxed_slice()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::encode(&self.0))
    }
}

impl fmt::Debug for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl From<LinkTarget> for String {
    fn from(target: LinkTarget) -> String {
        target.to_string()
    }
}

impl TryFrom<String> for LinkTarget {
    type Error = InvalidEntry;
    fn try_from(text: String) -> Result<Self, InvalidEntry> {
        let bytes = escape::decode(&text).map_err(|e| InvalidEntry {
            kind: "canonically escaped link target",
            value: escape::encode(e.0.as_bytes()),
        })?;
        Self::from_bytes(bytes)
    }
}

impl JsonSchema for Mode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-7]{4}$" })
    }
}

impl JsonSchema for LinkTarget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LinkTarget".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_one_text() {
        assert_eq!(Mode::from_bits(0o100_755).to_string(), "0755");
        assert_eq!(Mode::from_bits(0o104_755).to_string(), "4755");
        for bad in ["755", "00755", "0o755", "0999", "-755", "+755", ""] {
            assert!(Mode::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn entries_refuse_unknown_fields() {
        let entry = Entry::Symlink { target: LinkTarget::from_bytes("b\\\n").unwrap() };
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(text, r#"{"type":"symlink","target":"b\\\\\\x0a"}"#);
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        assert!(serde_json::from_str::<Entry>(&text.replace("}", r#","x":1}"#)).is_err());
    }

    #[test]
    fn where_bytes_are_stored_is_no_difference_to_a_person() {
        let file = |content| Entry::File { digest: Digest::of("x"), size: 1, mode: Mode::from_bits(0o644), content };
        assert!(file(Content::Stored).same(&file(Content::Sealed)));
        assert!(file(Content::Large).blob().is_none());
    }
}
