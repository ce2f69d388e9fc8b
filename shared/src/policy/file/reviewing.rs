//! Verifiers, reviews and escalation levels as they are written.
//!
//! They merge by name, key by key: what an entry leaves out, its namesake in
//! the parent says.

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::{Command, Quorum};
use crate::policy::words::{Excluded, Independence, Network, OnTimeout};
use crate::records::{EvidenceKind, ReviewKind, Trigger};
use crate::time::Span;

/// A command that a reviewer runs in a fresh copy of the checkpoint's tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerifierFile {
    /// The command; exit code 0 passes.
    pub run: Option<Command>,
    /// How long it may take.
    pub timeout: Option<Span>,
    /// What network it sees.
    pub network: Option<Network>,
    /// Paths taken from the target at base, read-only, such as `node_modules`.
    pub carry: Option<Vec<String>>,
    /// Files restored from the base before it runs, such as tests.
    pub from_base: Option<Vec<String>>,
    /// The files that it says something about.
    pub covers: Option<Vec<String>>,
}

/// A judgement that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewFile {
    /// Its name.
    pub name: String,
    /// Who judges.
    #[serde(default)]
    pub kind: Option<ReviewKind>,
    /// The triggers whose checkpoints it judges.
    #[serde(default)]
    pub on: Option<Vec<Trigger>>,
    /// It is asked for only where this holds.
    #[serde(default)]
    pub when: Option<String>,
    /// The verifiers that a `rules` review runs; left out: every one.
    #[serde(default)]
    pub verifiers: Option<Vec<String>>,
    /// Whether work waits for it.
    #[serde(default)]
    pub blocking: Option<bool>,
    /// How many reviewers judge.
    #[serde(default)]
    pub count: Option<u32>,
    /// How many of them must approve.
    #[serde(default)]
    pub quorum: Option<Quorum>,
    /// Whether one negative verdict is enough to send the work back, whatever the quorum.
    #[serde(default)]
    pub veto: Option<bool>,
    /// In what its reviewers must differ.
    #[serde(default)]
    pub independent: Option<Vec<Independence>>,
    /// Kinds of evidence that every reviewer must have fetched.
    #[serde(default)]
    pub must_read: Option<Vec<EvidenceKind>>,
    /// How long it may take.
    #[serde(default)]
    pub timeout: Option<Span>,
    /// The model that judges, for `kind: model`; left out: the settings' default.
    #[serde(default)]
    pub model: Option<String>,
    /// The program that judges, for `kind: command`.
    #[serde(default)]
    pub command: Option<Command>,
    /// The level that is asked, for `kind: human`.
    #[serde(default)]
    pub level: Option<String>,
}

/// Who is asked, and how long.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LevelFile {
    /// People and groups, such as `anna` or `group:cab`.
    pub to: Option<Vec<String>>,
    /// Sinks that are told, by their name in the settings.
    pub notify: Option<Vec<String>>,
    /// How long they have.
    pub deadline: Option<Span>,
    /// Office hours in which the deadline runs, such as `Mon-Fri 08-18 Europe/Zurich`.
    pub hours: Option<String>,
    /// How many people must approve.
    pub approvers: Option<u32>,
    /// Who may not.
    pub exclude: Option<Vec<Excluded>>,
    /// The level that is asked when the deadline passes.
    pub next: Option<String>,
    /// What happens when it passes and there is no next level.
    pub on_timeout: Option<OnTimeout>,
}
