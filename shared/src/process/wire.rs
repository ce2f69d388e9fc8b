//! What a caller and its supervisor tell each other: one line of JSON each way.
//!
//! Both ends are the same build of the same binary, so this format carries no
//! version and is published nowhere. Byte strings travel as base64, because
//! arguments and paths need not be UTF-8.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::confine::Confinement;
use super::error::Refusal;
use super::finished::Finished;

/// The longest request line: the kernel refuses larger argument lists anyway.
pub(super) const REQUEST_BYTES_MAX: u64 = 16 << 20;

/// The longest report line.
pub(super) const REPORT_BYTES_MAX: u64 = 1 << 20;

/// The line that asks a supervisor to stop its command.
pub(super) const CANCEL: &str = "cancel";

/// A byte string as base64 text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    pub(super) fn of(text: impl AsRef<OsStr>) -> Self {
        Self(text.as_ref().as_bytes().to_vec())
    }

    pub(super) fn to_os(&self) -> OsString {
        OsString::from_vec(self.0.clone())
    }

    pub(super) fn to_path(&self) -> PathBuf {
        PathBuf::from(self.to_os())
    }
}

impl TryFrom<String> for Bytes {
    type Error = base64::DecodeError;
    fn try_from(text: String) -> Result<Self, base64::DecodeError> {
        STANDARD.decode(text).map(Self)
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> String {
        STANDARD.encode(bytes.0)
    }
}

/// Everything that a supervisor needs to run one command. It holds secrets, so it has no `Debug`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) argv: Vec<Bytes>,
    pub(super) cwd: Bytes,
    pub(super) env: BTreeMap<Bytes, Bytes>,
    pub(super) time_limit_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) output_bytes_max: u64,
    pub(super) stdin: Option<Bytes>,
    pub(super) stdout: Bytes,
    /// Absent: standard error goes into the same file as standard output, in the order of the writes.
    pub(super) stderr: Option<Bytes>,
    pub(super) confinement: Option<Confinement>,
}

/// What a supervisor answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// The command ran and is over.
    Finished(Finished),
    /// The command never started.
    Refused(Refusal),
}
