//! Paths inside a tree: relative, of any bytes, and unable to leave it.
//!
//! A [`RelPath`] never names a `.git`, in any letter case: what git keeps there
//! (hooks, configuration) would run code, so no tree may bring it along. This
//! module does not touch the file system.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::escape;

/// The longest path that is accepted, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;

/// The longest component that is accepted, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The deepest path that is accepted, in components.
pub const DEPTH_MAX: usize = 128;

/// A relative path inside a tree. Its order is the order of its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(Box<[u8]>);

/// Bytes or text that are no path inside a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is not a path inside a tree: {reason}")]
pub struct InvalidPath {
    /// The path, escaped and shortened.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Whether a name belongs to git's own files and therefore to no tree.
pub fn is_git_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

fn fault(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("it is empty");
    }
    if bytes.len() > PATH_BYTES_MAX {
        return Some("it is longer than 4096 bytes");
    }
    if bytes.contains(&0) {
        return Some("it holds a NUL byte");
    }
    if bytes[0] == b'/' {
        return Some("it is absolute");
    }
    let mut depth = 0;
    for name in bytes.split(|b| *b == b'/') {
        depth += 1;
        match name {
            b"" => return Some("it has an empty component"),
            b"." | b".." => return Some("it has a `.` or `..` component"),
            _ if name.len() > NAME_BYTES_MAX => return Some("a component is longer than 255 bytes"),
            _ if is_git_name(name) => return Some("it names a `.git`"),
            _ => {}
        }
    }
    (depth > DEPTH_MAX).then_some("it has more than 128 components")
}

impl RelPath {
    /// Checks bytes, as the file system has them.
    ///
    /// # Errors
    ///
    /// [`InvalidPath`] with the reason.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidPath> {
        let bytes = bytes.into();
        match fault(&bytes) {
            None => Ok(Self(bytes.into_boxed_slice())),
            Some(reason) => {
                let path = escape::encode(&bytes[..bytes.len().min(200)]);
                Err(InvalidPath { path, reason })
            }
        }
    }

    /// Checks a relative file-system path.
    ///
    /// # Errors
    ///
    /// [`InvalidPath`] with the reason.
    pub fn from_path(path: &Path) -> Result<Self, InvalidPath> {
        Self::from_bytes(path.as_os_str().as_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for the file system, relative to the tree's root.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The path for the file system, beneath `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        root.join(self.as_path())
    }

    /// The components, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().expect("splitting yields at least one piece")
    }

    /// The directory that holds it, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..slash].into()))
    }

    /// Every directory above it below the root, innermost first.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// The path of `name` in this directory.
    ///
    /// # Errors
    ///
    /// [`InvalidPath`] where `name` is no component or the result is too long.
    pub fn child(&self, name: &[u8]) -> Result<Self, InvalidPath> {
        Self::from_bytes([self.as_bytes(), b"/", name].concat())
    }

    /// Whether it stands somewhere below the directory `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0) && self.0[other.0.len()] == b'/'
    }
}

impl Borrow<[u8]> for RelPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::encode(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl TryFrom<String> for RelPath {
    type Error = InvalidPath;
    fn try_from(text: String) -> Result<Self, InvalidPath> {
        text.parse()
    }
}

impl FromStr for RelPath {
    type Err = InvalidPath;
    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let bytes = escape::decode(text).map_err(|e| InvalidPath {
            path: escape::encode(e.0.as_bytes()),
            reason: "it is not canonically escaped",
        })?;
        Self::from_bytes(bytes)
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> String {
        path.to_string()
    }
}

impl schemars::JsonSchema for RelPath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RelPath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A relative path; a backslash is `\\\\`, hidden or invalid bytes are `\\xNN`",
            "minLength": 1,
            "pattern": r"^[^/]"
        })
    }
}

#[cfg(test)]
mod tests;
