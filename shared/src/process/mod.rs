//! Runs one foreign program and makes sure that nothing of it survives.
//!
//! The caller's own binary is started again as a *supervisor*, one process for
//! each command. It adopts whatever the command leaves behind (also what called
//! `setsid` or forked twice), enforces the time limit, keeps the output up to a
//! cap, and kills everything when the command ends, is cancelled, or its caller
//! dies. The environment of a command is exactly what the caller gives.
//!
//! What it does not do: it never interprets output, retries, or redacts (see
//! [`crate::redact`]), and it cannot reach work that a command hands to a daemon
//! which was there before (a container engine, `cron`, a service manager).

mod command;
mod confine;
mod error;
mod finished;
mod guard;
mod proc_table;
mod run;
mod supervise;
mod wire;

pub use command::{Command, Limits, Output};
pub use confine::Confinement;
pub use error::{Error, Refusal};
pub use finished::{Captured, Ending, Finished};
pub use guard::hide_own_memory;
pub use run::Supervisor;
pub use supervise::{SUPERVISE, supervise_main};
