//! A policy file as it is written: every section and most keys may be left out.
//!
//! What is left out comes from the policy that the file extends. These types
//! say what may be written where; what it amounts to is a
//! [`super::ResolvedPolicy`].

mod forms;
mod reviewing;
mod rule;
mod settings;
mod tool;
mod trigger;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use forms::{Command, Quorum, With};
pub use reviewing::{LevelFile, ReviewFile, VerifierFile};
pub use rule::RuleFile;
pub use settings::{
    BudgetsFile, CheckFile, ConstraintFile, InheritFile, LimitsFile, PatternFile, RedactionFile, RetentionFile,
    WorkspaceFile,
};
pub use tool::ToolFile;
pub use trigger::{TriggerFile, TriggersFile};

use super::words::CheckName;

/// A policy file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Checkrein policy")]
pub struct PolicyFile {
    /// The version of the format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The policy that this one starts from: the name of a built-in one (`default`, `strict`) or a path relative to
    /// this file. Left out: `default`.
    #[serde(default)]
    pub extends: Option<String>,
    /// Rules that every result must keep, as reviewers read them.
    #[serde(default)]
    pub constraints: Vec<ConstraintFile>,
    /// How the workspace is handled.
    #[serde(default)]
    pub workspace: WorkspaceFile,
    /// Which tools may be called how. The first match counts; what no entry matches is effectful and gated.
    #[serde(default)]
    pub tools: Vec<ToolFile>,
    /// When checkpoints are written, and which of them are gates.
    #[serde(default)]
    pub triggers: TriggersFile,
    /// Commands that reviewers run themselves, by name.
    #[serde(default)]
    pub verifiers: BTreeMap<String, VerifierFile>,
    /// Who judges what.
    #[serde(default)]
    pub reviews: Vec<ReviewFile>,
    /// What follows from it: the first rule that matches decides.
    #[serde(default)]
    pub rules: Vec<RuleFile>,
    /// When an approval carries over to a later checkpoint.
    #[serde(default)]
    pub inherit: InheritFile,
    /// Who is asked, by name of the level. The first level is the one that is asked where nothing else is said.
    #[serde(default)]
    pub escalation: BTreeMap<String, LevelFile>,
    /// Limits.
    #[serde(default)]
    pub budgets: BudgetsFile,
    /// What is removed from records and evidence.
    #[serde(default)]
    pub redaction: RedactionFile,
    /// How long things are kept.
    #[serde(default)]
    pub retention: RetentionFile,
    /// What each built-in check of the `rules` reviewer does.
    #[serde(default)]
    pub checks: BTreeMap<CheckName, CheckFile>,
    /// Examples that this policy must decide as they say; `checkrein policy test` runs them.
    #[serde(default)]
    pub tests: Vec<TestFile>,
}

/// An example: facts, and the rule that must decide them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestFile {
    /// What the example shows.
    pub name: String,
    /// Facts as expressions see them, besides `on` (the event; `round` where left out) and `fired` (how often each rule
    /// decided before).
    #[serde(default)]
    pub given: Map<String, Value>,
    /// What must follow.
    pub expect: ExpectFile,
}

/// What an example must lead to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectFile {
    /// The rule's id; `no-match` and `expression-error` are what stands in for one.
    pub rule: String,
    /// The action.
    pub action: super::words::Action,
}
