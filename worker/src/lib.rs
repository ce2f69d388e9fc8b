//! The worker: runs the steps of a task in an isolated copy of its workspace.

pub mod workspace;
