//! A resolved policy: everything said, nothing left to a default.
//!
//! It is what a task pins. It has one canonical form and one digest, so that a
//! decision can name it. It holds no compiled expressions: [`ResolvedPolicy::compile`]
//! makes them, and checks everything again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Defines plain records that refuse unknown fields.
macro_rules! parts {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }
    )*};
}

mod acting;
mod reviewing;
mod settings;

pub use acting::{PolicyTest, Rule, Tool, ToolLayer, TriggerRule, Triggers};
pub use reviewing::{Constraint, Level, Review, Verifier};
pub use settings::{Budgets, Checks, Inherit, Limits, Redaction, Retention, SizeLimit, Workspace};

use super::compile::CompiledPolicy;
use super::error::{PolicyError, Problem};
use crate::digest::Digest;
use crate::json;
use crate::records::{ConstraintRef, TaskSpec};

/// The version of the resolved form that this build writes and reads.
pub const FORMAT: u32 = 1;

/// A policy with everything that it extends folded in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedPolicy {
    /// The version of this form.
    pub format: u32,
    /// The policy's name: of a built-in one, or of its file without folders.
    pub name: String,
    /// The files that it was made of, the most derived first.
    pub sources: Vec<Source>,
    /// Rules that every result must keep.
    pub constraints: Vec<Constraint>,
    /// How the workspace is handled.
    pub workspace: Workspace,
    /// Tools, one layer for each file that lists any, the most derived first.
    pub tools: Vec<ToolLayer>,
    /// When checkpoints are written.
    pub triggers: Triggers,
    /// Verifiers by name.
    pub verifiers: BTreeMap<String, Verifier>,
    /// Who judges what.
    pub reviews: Vec<Review>,
    /// The rules in the order in which they are asked: floors first.
    pub rules: Vec<Rule>,
    /// When approvals carry over.
    pub inherit: Inherit,
    /// Escalation levels by name.
    pub escalation: BTreeMap<String, Level>,
    /// The level that is asked where nothing names one.
    pub default_level: String,
    /// Limits.
    pub budgets: Budgets,
    /// What is removed from records and evidence.
    pub redaction: Redaction,
    /// How long things are kept.
    pub retention: Retention,
    /// What the built-in checks do.
    pub checks: Checks,
    /// The policy's own examples.
    pub tests: Vec<PolicyTest>,
}

/// A file that a policy was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The file, without the folder that the policy was loaded from.
    pub file: String,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// Where something stands: a file of [`ResolvedPolicy::sources`], and a line and column from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A condition and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The expression.
    pub source: String,
    /// Where it starts.
    pub origin: Origin,
}

impl ResolvedPolicy {
    /// The policy's digest: what bindings and decisions name.
    ///
    /// # Panics
    ///
    /// Never for a policy that was loaded or parsed: both refuse what has no canonical form.
    pub fn digest(&self) -> Digest {
        json::digest(self).expect("a resolved policy holds only text, booleans and bounded integers")
    }

    /// The canonical bytes, as they are kept in the blob store.
    ///
    /// # Panics
    ///
    /// As [`ResolvedPolicy::digest`].
    pub fn to_bytes(&self) -> Vec<u8> {
        json::canonical(self).expect("a resolved policy holds only text, booleans and bounded integers")
    }

    /// Reads a resolved policy back from its bytes, strictly, and checks it again.
    ///
    /// # Errors
    ///
    /// Bytes that are no resolved policy of this format, or one that a loader would have refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        const SHOWN_AS: &str = "resolved policy";
        let policy: Self =
            json::parse_as("resolved policy", bytes).map_err(|error| Problem::whole(SHOWN_AS, error.to_string()))?;
        if policy.format != FORMAT {
            let message = format!("it has format {}; this build reads format {FORMAT}", policy.format);
            return Err(Problem::whole(SHOWN_AS, message).into());
        }
        if json::canonical(&policy).is_err() {
            return Err(Problem::whole(SHOWN_AS, "it holds a number that has no canonical form").into());
        }
        CompiledPolicy::new(policy.clone()).map(|_| policy)
    }

    /// Compiles every expression and checks every reference.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, with the place in the policy's files.
    pub fn compile(&self) -> Result<CompiledPolicy, PolicyError> {
        CompiledPolicy::new(self.clone())
    }

    /// The rules that a task's result must keep, as checkpoints name them: its own, then the policy's.
    pub fn constraint_refs(&self, spec: &TaskSpec) -> Vec<ConstraintRef> {
        let of_task = spec.constraints.iter().map(|c| (&c.id, c.version, c.hash()));
        let of_policy = self.constraints.iter().map(|c| (&c.id, u64::from(c.version), c.hash));
        of_task.chain(of_policy).map(|(id, version, hash)| ConstraintRef { id: id.clone(), version, hash }).collect()
    }

    /// The rule with this id.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// The review with this name.
    pub fn review(&self, name: &str) -> Option<&Review> {
        self.reviews.iter().find(|review| review.name == name)
    }

    /// The level with this name; the default level where there is none such.
    ///
    /// # Panics
    ///
    /// Never for a policy that compiled: its default level exists.
    pub fn level(&self, name: &str) -> &Level {
        let found = self.escalation.get(name).or_else(|| self.escalation.get(&self.default_level));
        found.expect("a compiled policy has its default level")
    }
}
