//! How a command that acts outside the scratch is handled: how long it may
//! take, and what tells or undoes what it did.
//!
//! A plan says it, a policy may add to it, and the effects ledger keeps it.
//! Nothing here runs anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// How a command is handled. What is left out is not in the plan's hash either.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handling {
    /// How long it may take; `None`: as long as task and policy allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether the other side honours the key in `CHECKREIN_IDEMPOTENCY_KEY`: the command may then run again with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// A command that tells whether it took effect: exit code 0 says yes, 1 says no, anything else says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Vec<String>>,
    /// A command that shows what it would do, and does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<Vec<String>>,
    /// A command that undoes it. It is shown to people and never run by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensate: Option<Vec<String>>,
}

impl Handling {
    /// Whether it says nothing.
    pub fn is_default(&self) -> bool {
        self == &Self::default()
    }
}
