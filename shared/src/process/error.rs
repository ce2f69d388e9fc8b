//! Why a command could not be run. A command that ran and failed is no error.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// Why the supervisor did not start the command. Nothing of it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Refusal {
    /// There is no program to run.
    #[error("the command is empty: name a program to run")]
    Empty,
    /// No file of that name.
    #[error("`{program}` was not found in {searched}: install it, or give its path")]
    NotFound {
        /// The program as it was given.
        program: String,
        /// Where it was looked for: `PATH` with its value, or one folder.
        searched: String,
    },
    /// The file is there but the system does not run it.
    #[error("`{path}` can't be executed: {reason}")]
    NotExecutable {
        /// The file that was found.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The working directory can't be entered.
    #[error("the working directory `{path}` can't be used: {reason}")]
    WorkingDirectory {
        /// The directory.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A file for the command's input or output can't be opened.
    #[error("`{path}` can't be opened for the command's {stream}: {reason}")]
    Stream {
        /// Which stream: `input` or `output`.
        stream: String,
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// An argument, name or value holds a byte that no program can receive.
    #[error("{what} can't be passed to a program: {reason}")]
    Unpassable {
        /// Which part of the command.
        what: String,
        /// Why not.
        reason: String,
    },
    /// The required confinement is not to be had here.
    #[error("the command can't be confined as required: {reason}")]
    Unconfined {
        /// What is missing.
        reason: String,
    },
    /// The system refused for another reason.
    #[error("the system did not start `{program}`: {reason}")]
    System {
        /// The program as it was given.
        program: String,
        /// The system's words.
        reason: String,
    },
}

/// Why there is no result of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command never started.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The supervisor itself did not start.
    #[error("can't start the supervisor `{program}`")]
    Supervisor {
        /// The program that was to supervise.
        program: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The request is longer than any program's arguments can be.
    #[error("the command and its environment take {bytes} bytes, more than {max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The largest size.
        max: u64,
    },
    /// The supervisor ended, or had to be killed, without a report. What the command did is unknown; what was still in
    /// its session has been killed, but a process that left the session may live on.
    #[error("the supervisor ended without a report ({status}): the command's outcome is unknown")]
    NoReport {
        /// How the supervisor ended.
        status: ExitStatus,
    },
    /// Output was lost because the file could not be written (a full disk, say).
    #[error("the command's output could not be kept: {reason}")]
    OutputLost {
        /// The system's reason.
        reason: String,
    },
    /// The system refused something that has nothing to do with the command.
    #[error("can't talk to the supervisor")]
    Io(#[source] io::Error),
}
