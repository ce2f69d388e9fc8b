//! The task as submitted: what a task file says, with every path and text
//! resolved. A submitted specification never changes; an amendment is an event
//! that names a new one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::digest::Digest;
use crate::ids::RootId;
use crate::json;
use crate::time::Span;

/// What a person wants done, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// The version of this record; 1.
    pub format: u32,
    /// A short name for people.
    pub name: String,
    /// What is to be achieved, in a sentence or two.
    pub objective: String,
    /// The longer specification, if there is one.
    pub spec: Option<SpecText>,
    /// Rules that the result must keep.
    pub constraints: Vec<Constraint>,
    /// Where the work happens.
    pub workspace: WorkspaceSpec,
    /// Free labels, visible to policies.
    pub labels: BTreeMap<String, String>,
    /// The agent that carries out `prompt` steps.
    pub agent: Option<AgentSpec>,
    /// The first version of the plan.
    pub plan: Plan,
    /// Limits of this task; the policy's apply where these are silent.
    pub budgets: Budgets,
}

/// A specification text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecText {
    /// `inline`, or the file's name.
    pub spec_ref: String,
    /// The whole text.
    pub text: String,
}

/// A rule that the result must keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Its name.
    pub id: String,
    /// Its version, from 1.
    pub version: u64,
    /// The rule.
    pub text: String,
}

/// Where the work happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkspaceSpec {
    /// A directory on the host whose worker serves its root.
    Directory(String),
}

/// The program that carries out `prompt` steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The command, as an argument vector.
    pub command: Vec<String>,
    /// Names of environment variables that the agent may see; values come from the worker and are never stored.
    pub env: Vec<String>,
    /// Which home directory the agent sees.
    pub home: HomeDir,
}

/// Which home directory an agent sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HomeDir {
    /// An empty one of its own.
    #[default]
    Private,
    /// The home of the user who runs the worker.
    User,
}

/// Limits; `None` means that the policy's limit applies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    /// Model turns over the whole task.
    pub turns: Option<u64>,
    /// Tokens over the whole task.
    pub tokens: Option<u64>,
    /// Cost in millionths of the account's currency.
    pub cost_micros: Option<u64>,
    /// Time under lease.
    pub wall: Option<Span>,
    /// Review rounds.
    pub rounds: Option<u64>,
}

impl WorkspaceSpec {
    /// The target's name: `root-` and twelve digits of the digest of its path, which must be canonical.
    pub fn root_id(&self) -> RootId {
        let Self::Directory(path) = self;
        let name = format!("root-{}", Digest::of(path).short());
        name.parse().expect("hexadecimal digits after `root-` always make an id")
    }
}

impl TaskSpec {
    /// The digest of objective and specification: what an agent must not drift away from.
    pub fn spec_hash(&self) -> Digest {
        let text = self.spec.as_ref().map(|s| s.text.as_str());
        json::digest(&(&self.objective, text)).expect("strings always have a canonical form")
    }

    /// The name of the specification text for checkpoints.
    pub fn spec_ref(&self) -> &str {
        self.spec.as_ref().map_or("objective", |s| &s.spec_ref)
    }
}

impl Constraint {
    /// The digest of the rule's text.
    pub fn hash(&self) -> Digest {
        Digest::of(&self.text)
    }
}
