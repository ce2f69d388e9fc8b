//! Warnings: what a policy may say, but hardly means.
//!
//! A policy with warnings works. What can't work is an error and is found when
//! it is loaded.

mod levels;
mod reviewing;
mod rules;

use std::fmt;

use super::compile::CompiledPolicy;
use super::resolved::Origin;

/// Something that is hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub origin: Origin,
    /// What is odd.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: warning: {}", self.origin.file, self.origin.line, self.origin.column, self.message)
    }
}

/// What the agent that a policy is to be used with can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentKind {
    /// Unknown: nothing is said about it.
    #[default]
    Any,
    /// A program that is seen only when its step ends.
    Command,
}

/// Everything that is hardly meant, in the order of the files.
pub fn lint(policy: &CompiledPolicy, agent: AgentKind) -> Vec<Warning> {
    let mut warnings = Vec::new();
    rules::lint(policy, &mut warnings);
    reviewing::lint(policy, agent, &mut warnings);
    levels::lint(policy.policy(), &mut warnings);
    warnings.sort_by(|a, b| (&a.origin.file, a.origin.line).cmp(&(&b.origin.file, b.origin.line)));
    warnings
}

fn warn(warnings: &mut Vec<Warning>, origin: &Origin, message: impl Into<String>) {
    warnings.push(Warning { origin: origin.clone(), message: message.into() });
}
