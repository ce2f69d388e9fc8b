//! Policies: the files that say when checkpoints are written, who judges them,
//! and what follows.
//!
//! A file is loaded strictly, merged with what it extends, and checked down to
//! every expression; then it decides. All of it is synchronous and pure but
//! for the reading of files. Nothing here knows a task's state: facts come in,
//! a decision goes out.
//!
//! ```
//! use checkrein_shared::policy::{self, Facts, Fired, RuleEvent};
//!
//! let policy = policy::load_named("default")?.compile()?;
//! let outcome = policy::evaluate_rules(&policy, RuleEvent::Round, &Facts::default(), &Fired::default());
//! println!("{} decided: {}", outcome.rule, outcome.action);
//! # Ok::<(), policy::PolicyError>(())
//! ```

mod check;
mod compile;
mod error;
mod evaluate;
mod examples;
mod expr;
mod facts;
pub mod file;
mod globs;
mod hours;
mod lint;
mod load;
mod merge;
mod name;
mod nearest;
mod resolved;
mod schema;
mod words;
pub(crate) mod yaml;

#[cfg(test)]
mod tests;

pub use compile::CompiledPolicy;
pub use error::{PolicyError, Problem};
pub use evaluate::{
    EXPRESSION_ERROR, Fired, GateCover, NO_MATCH, Outcome, Reason, ReviewRequirement, Seen, ToolDecision, Tried,
    TriggerDecision, effect_word, evaluate_rules, gate_cover, lists_tool, required_reviews, step_rule,
    threshold_crossed, tool_rule, trigger_fires,
};
pub use examples::{TestResult, run_policy_tests};
pub use facts::{
    AttemptFacts, BudgetFacts, CallFacts, ChangesetFacts, CheckpointFacts, ContextFacts, DriftFacts, Facts,
    FindingFacts, ReviewFacts, RoundFacts, StepFacts, TaskFacts, TestFacts, VerifierFacts,
};
pub use file::{Command, ExpectFile, PatternFile, Quorum, With};
pub use globs::any_glob;
pub use hours::{Hours, InvalidHours};
pub use lint::{AgentKind, Warning, lint};
pub use load::{BUILT_IN, built_in, load_file, load_named, load_text};
pub use resolved::{
    Budgets, Checks, Constraint, FORMAT, Inherit, Level, Limits, Origin, PolicyTest, Redaction, ResolvedPolicy,
    Retention, Review, Rule, SizeLimit, Source, Tool, ToolLayer, TriggerRule, Triggers, Verifier, When, Workspace,
};
pub use schema::file_schema;
pub use words::{
    Action, ApplyTo, ApplyWhen, CheckMode, CheckName, Confinement, Excluded, Independence, InheritBase, Network,
    OnTimeout, RedactionPack, RuleEvent, ToolMode,
};
