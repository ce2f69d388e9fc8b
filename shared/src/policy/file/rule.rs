//! Rules as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::With;
use crate::policy::words::{Action, RuleEvent};

/// A rule: where its condition holds, it decides.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// Its name; every decision names it.
    pub id: String,
    /// A floor rule is asked before all others, and a policy that extends this one can't take it away.
    #[serde(default)]
    pub floor: bool,
    /// The events that it is asked about.
    pub on: Vec<RuleEvent>,
    /// The condition.
    pub when: String,
    /// What to do.
    pub action: Action,
    /// For `retry`: who carries it out.
    #[serde(default)]
    pub with: Option<With>,
    /// What people and the agent are told.
    #[serde(default)]
    pub message: Option<String>,
    /// How often it may decide so for one task.
    #[serde(default)]
    pub limit: Option<u32>,
    /// What to do beyond the limit.
    #[serde(default)]
    pub then: Option<Action>,
    /// The level to escalate to.
    #[serde(default)]
    pub level: Option<String>,
}
