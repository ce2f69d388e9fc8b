//! The result file that an agent may leave: what it claims, with refs.
//!
//! Nothing in it is believed: a claim's basis is at most `self_reported`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::EvidenceRef;
use crate::json;

/// The largest result file that is read, in bytes.
pub const RESULT_BYTES_MAX: u64 = 256 * 1024;

/// What an agent writes to the path in `CHECKREIN_RESULT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultFile {
    /// The version of this file; 1.
    pub version: u32,
    /// What the agent says it did.
    #[serde(default)]
    pub claims: Vec<ClaimedResult>,
    /// What it says is still open.
    #[serde(default)]
    pub open_issues: Vec<String>,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimedResult {
    /// What is claimed.
    pub text: String,
    /// What it rests on: refs from the instruction file, `file:<path>`, or `log:this` for this attempt's output.
    #[serde(default)]
    pub refs: Vec<EvidenceRef>,
}

/// Why a result file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ResultFileError {
    /// It is not strict JSON or not such a record.
    #[error("the result file is refused: {0}")]
    Invalid(#[source] json::Error),
    /// It has another version.
    #[error("the result file has version {0}; this build reads version 1")]
    Version(u32),
    /// It claims too much.
    #[error("the result file has {0} claims, more than the 200 that are allowed")]
    TooMany(usize),
    /// A claim is empty or too long.
    #[error("claim {0} of the result file is empty or longer than 2,000 characters")]
    Text(usize),
}

impl ResultFile {
    /// Reads a result file strictly.
    ///
    /// # Errors
    ///
    /// [`ResultFileError`] that says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ResultFileError> {
        let file: Self = json::parse_as("result file", bytes).map_err(ResultFileError::Invalid)?;
        if file.version != 1 {
            return Err(ResultFileError::Version(file.version));
        }
        if file.claims.len() > 200 {
            return Err(ResultFileError::TooMany(file.claims.len()));
        }
        let odd = |c: &ClaimedResult| c.text.trim().is_empty() || c.text.chars().count() > 2_000;
        match file.claims.iter().position(odd) {
            Some(index) => Err(ResultFileError::Text(index + 1)),
            None => Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_result_files_are_refused_with_the_reason() {
        let cases: [(&str, &str); 7] = [
            ("", "not strict JSON"),
            ("null", "not a valid result file"),
            ("{\"version\":2}", "version 2"),
            ("{\"version\":1,\"claim\":[]}", "unknown field `claim`"),
            ("{\"version\":1,\"version\":1}", "stands twice"),
            ("{\"version\":1,\"claims\":[{\"text\":\" \"}]}", "claim 1"),
            ("{\"version\":1,\"claims\":[{\"text\":\"x\",\"refs\":[\"nonsense\"]}]}", "not an evidence ref"),
        ];
        for (text, part) in cases {
            let error = ResultFile::parse(text.as_bytes()).unwrap_err();
            let whole = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
            assert!(whole.contains(part), "{text}: {whole}");
        }
        assert!(ResultFile::parse(b"{\"version\":1}").is_ok());
    }
}
