//! The ordered scales that records use. Each orders from harmless to grave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much an action can harm, and whether it can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub enum Risk {
    /// Reads only.
    R0,
    /// Reversible, and only in the scratch.
    #[default]
    R1,
    /// Reversible, in the target.
    R2,
    /// Changes the world outside the workspace.
    R3,
    /// Can't be undone.
    R4,
}

impl Risk {
    /// The name as written: `R0` to `R4`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::R0 => "R0",
            Self::R1 => "R1",
            Self::R2 => "R2",
            Self::R3 => "R3",
            Self::R4 => "R4",
        }
    }
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a look.
    Low,
    /// Should be mended.
    Medium,
    /// Must be mended before the change is used.
    High,
    /// Harm is certain or has happened.
    Critical,
}

impl Severity {
    /// The name as written in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How sure a reviewer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A guess.
    Low,
    /// Likely.
    Medium,
    /// Checked.
    High,
}

/// What a claim rests on, from nothing to a reviewer's own run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// No evidence is named, or none of it exists.
    Absent,
    /// Concluded from something else.
    Inferred,
    /// The worker's own evidence.
    SelfReported,
    /// A reviewer ran it.
    Verified,
}

/// The part that a process plays; each has its own keys and permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs steps and writes checkpoints.
    Worker,
    /// Judges checkpoints and signs verdicts.
    Reviewer,
    /// Decides, and writes control checkpoints.
    Orchestrator,
    /// A person.
    Person,
}

impl Role {
    /// The name as written in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Reviewer => "reviewer",
            Self::Orchestrator => "orchestrator",
            Self::Person => "person",
        }
    }
}
