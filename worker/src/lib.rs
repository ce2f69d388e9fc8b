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

mod conditions;
mod drift;
mod kept;
mod orders;
mod resume;
mod room;
mod runner;
mod saves;
mod submit;

mod commit;
mod desk;
mod git_head;
mod ground;
mod jobs;
mod measure;
mod policy;
mod preconditions;

mod briefing;
mod effects;
mod execute;
mod failure;
mod instruction;
mod output;

mod claims;
mod index;
mod recorder;
mod results;

mod checkpoint;
mod propose;
mod trigger;

pub use config::WorkerConfig;
pub use environment::HostEnvironment;
pub use room::Error as CacheError;
pub use roots::root_id;
pub use runner::{Error, Worker};
