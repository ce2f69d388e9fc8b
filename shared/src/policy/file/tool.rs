//! Tools as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::Command;
use crate::policy::words::ToolMode;
use crate::records::EffectClass;
use crate::time::Span;

/// How calls of some tools are treated.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolFile {
    /// A glob over tool names, such as `builtin:run_command` or `mcp:payments/*`; `*` matches anything.
    #[serde(rename = "match")]
    pub matches: String,
    /// What a call does outside the scratch.
    pub effect: EffectClass,
    /// How a call is let through.
    pub mode: ToolMode,
    /// The entry counts only where this holds.
    #[serde(default)]
    pub when: Option<String>,
    /// How long a call may take.
    #[serde(default)]
    pub timeout: Option<Span>,
    /// A command that tells whether an interrupted call took effect.
    #[serde(default)]
    pub probe: Option<Command>,
    /// A command that shows what a call would do.
    #[serde(default)]
    pub dry_run: Option<Command>,
    /// A command that undoes a call.
    #[serde(default)]
    pub compensate: Option<Command>,
}
