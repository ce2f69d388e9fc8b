//! Identifiers: one newtype for each kind, so that no two can be mixed up.
//!
//! An id is 1 to 96 bytes of ASCII letters, digits, `.`, `_` and `-`, and begins
//! with a letter or a digit; it is therefore safe as a file name and in a URL.
//! This module does not decide which ids exist, and it makes no random ones
//! except where a caller hands it the random bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest id that is accepted, in bytes.
pub const ID_BYTES_MAX: usize = 96;

/// Text that is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{value}` is not a valid {kind}: use 1 to 96 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
)]
pub struct InvalidId {
    /// What kind of id was expected.
    pub kind: &'static str,
    /// What was given instead.
    pub value: String,
}

fn is_valid(value: &str) -> bool {
    let bytes = value.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= ID_BYTES_MAX
        && bytes[0].is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!("A ", $kind),
                    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$"
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(value: String) -> Result<Self, InvalidId> {
                if is_valid(&value) { Ok(Self(value)) } else { Err(InvalidId { kind: $kind, value }) }
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(value: &str) -> Result<Self, InvalidId> {
                Self::try_from(value.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A task, as a person submitted it: `t-7k3m9qfx`.
    TaskId = "task id";
    /// A step of a plan; its author chooses the name.
    StepId = "step id";
    /// One dispatch of work: `job-7k3m9qfx-4`, the last number being the epoch.
    JobId = "job id";
    /// A checkpoint: `cp-7k3m9qfx-0007`, the last number being the sequence.
    CheckpointId = "checkpoint id";
    /// A changeset: `cs-7k3m9qfx-0007`.
    ChangesetId = "changeset id";
    /// One review by one reviewer in one round: `rv-7k3m9qfx-0007-1-rules-1`.
    ReviewId = "review id";
    /// An item in the human inbox: `esc-7k3m9qfx-2`.
    EscalationId = "escalation id";
    /// A one-time permission: `g-7k3m9qfx-3`.
    GrantId = "grant id";
    /// An approval by a person: `ap-7k3m9qfx-1`.
    ApprovalId = "approval id";
    /// A finding, unique within its task.
    FindingId = "finding id";
    /// A message on the bus; the same across resends.
    MessageId = "message id";
    /// A target directory or repository on one host.
    RootId = "root id";
    /// A process that plays a role: `worker-2f9c`.
    InstanceId = "instance id";
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl TaskId {
    /// Makes a task id from five random bytes.
    pub fn from_random(bytes: [u8; 5]) -> Self {
        let mut bits = bytes.iter().fold(0u64, |acc, b| (acc << 8) | u64::from(*b));
        let mut text = [0u8; 8];
        for slot in text.iter_mut().rev() {
            *slot = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        let text: String = text.iter().map(|b| char::from(*b)).collect();
        Self(format!("t-{text}"))
    }

    /// The part that every derived id carries: `7k3m9qfx` of `t-7k3m9qfx`.
    pub fn short(&self) -> &str {
        self.0.strip_prefix("t-").unwrap_or(&self.0)
    }

    /// The id of the checkpoint with this sequence.
    pub fn checkpoint(&self, sequence: u64) -> CheckpointId {
        CheckpointId(format!("cp-{}-{sequence:04}", self.short()))
    }

    /// The id of the changeset that the checkpoint with this sequence proposes.
    pub fn changeset(&self, sequence: u64) -> ChangesetId {
        ChangesetId(format!("cs-{}-{sequence:04}", self.short()))
    }

    /// The id of the job dispatched at this epoch.
    pub fn job(&self, epoch: u64) -> JobId {
        JobId(format!("job-{}-{epoch}", self.short()))
    }

    /// The id of the `number`th item that this task put into the inbox.
    pub fn escalation(&self, number: u64) -> EscalationId {
        EscalationId(format!("esc-{}-{number}", self.short()))
    }

    /// The id of the `number`th grant of this task.
    pub fn grant(&self, number: u64) -> GrantId {
        GrantId(format!("g-{}-{number}", self.short()))
    }

    /// The id of the `number`th approval of this task.
    pub fn approval(&self, number: u64) -> ApprovalId {
        ApprovalId(format!("ap-{}-{number}", self.short()))
    }

    /// The id of the `number`th finding of this task.
    pub fn finding(&self, number: u64) -> FindingId {
        FindingId(format!("f-{}-{number}", self.short()))
    }

    /// The id of one reviewer's review in one round over the checkpoint with this sequence.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] where `review` holds a character that no id may hold.
    pub fn review(&self, sequence: u64, round: u32, review: &str, instance: u32) -> Result<ReviewId, InvalidId> {
        ReviewId::try_from(format!("rv-{}-{sequence:04}-{round}-{review}-{instance}", self.short()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_a_folder_or_break_a_line_are_refused() {
        for bad in ["", ".", "..", "-x", "a/b", "a b", "a\nb", "é", &"x".repeat(97)] {
            assert!(TaskId::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        assert!(TaskId::try_from("t-7k3m9qfx".to_owned()).is_ok());
    }

    #[test]
    fn derived_ids_carry_the_task() {
        let task = TaskId::from_random([0xff; 5]);
        assert_eq!(task.as_str(), "t-zzzzzzzz");
        assert_eq!(task.checkpoint(7).as_str(), "cp-zzzzzzzz-0007");
        assert_eq!(task.review(7, 1, "rules", 1).unwrap().as_str(), "rv-zzzzzzzz-0007-1-rules-1");
        assert_ne!(TaskId::from_random([0; 5]), TaskId::from_random([0, 0, 0, 0, 1]));
    }
}
