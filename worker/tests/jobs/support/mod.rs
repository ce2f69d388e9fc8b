//! A project, an orchestrator of one table, and real workers around them.

mod agents;
mod bench;
mod coordinator;
mod tasks;

pub use agents::Agents;
pub use bench::{Bench, RunningWorker, WorkerOptions};
pub use coordinator::{Grant, Link};
pub use tasks::{prompt, run, sh, task_of};
