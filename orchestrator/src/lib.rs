//! The orchestrator: decides what happens to tasks, and keeps the truth.

pub mod store;
