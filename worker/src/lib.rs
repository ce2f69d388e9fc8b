//! Runs a task's steps in an isolated copy of its workspace, and says from
//! evidence what came of it.
//!
//! A worker takes jobs from its pools, runs one in each slot, and keeps nothing
//! that matters: every job starts from stored trees and records, and ends with
//! a checkpoint or a report. It cannot judge its own work, and it changes the
//! user's files only with a grant.

mod config;
mod environment;
pub mod roots;
pub mod workspace;

mod runner;
mod room;
mod orders;
mod submit;
mod drift;

mod desk;
mod policy;
mod jobs;
mod preconditions;
mod measure;
mod git_head;
mod ground;

mod instruction;
mod briefing;
mod execute;
mod output;
mod failure;

mod index;
mod recorder;
mod results;
mod claims;

mod trigger;
mod checkpoint;
mod propose;

pub use config::WorkerConfig;
pub use environment::HostEnvironment;
pub use room::Error as CacheError;
pub use roots::root_id;
pub use runner::{Error, Worker};
