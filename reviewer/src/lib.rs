//! Reviews checkpoints from the original evidence and publishes signed verdicts.
//!
//! It reads records and blobs, and runs the policy's verifiers in copies of its
//! own. It never writes a workspace or a checkpoint, and it decides nothing about
//! a task: that is the orchestrator's part.

mod check;
mod error;
mod globs;
mod quote;
mod redaction;
mod settings;

mod delta;
mod ledger;
mod subject;

mod checks;
mod verifiers;

mod citations;
mod findings;

mod pipeline;
mod reviewer;

mod basis;
mod tools;

#[cfg(test)]
mod testing;

pub use basis::{Known, basis};
pub use error::{Error, StartError};
pub use reviewer::{Reviewer, ReviewerConfig};
pub use tools::Tools;
