//! Decides by a compiled policy: which rule, which reviews, which gate, how a
//! tool is let through.
//!
//! Whatever goes wrong here ends on the strict side: an expression that fails
//! never lets anything pass.

mod reviews;
mod rules;
mod tools;
mod triggers;

pub use super::expr::Seen;
pub use reviews::{GateCover, ReviewRequirement, gate_cover, required_reviews};
pub use rules::{EXPRESSION_ERROR, Fired, NO_MATCH, Outcome, Reason, Tried, evaluate_rules};
pub use tools::{ToolDecision, effect_word, lists_tool, step_rule, tool_rule};
pub use triggers::{TriggerDecision, threshold_crossed, trigger_fires};
