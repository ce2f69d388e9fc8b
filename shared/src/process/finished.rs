//! How a command ended and what it left: plain data, no judgement about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// It exited by itself with this code.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signalled(i32),
    /// It was still running at its time limit and was killed.
    TimedOut,
    /// The caller cancelled it (or went away) and it was killed.
    Cancelled,
}

impl Ending {
    /// Whether the command ran to its end and exited with 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// One captured stream: the bytes are in the file that the caller named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    /// How many bytes the file holds: the first and the last that were written.
    pub bytes_kept: u64,
    /// How many bytes between those were thrown away, because the output was larger than the cap.
    pub bytes_dropped: u64,
    /// The offset in the file at which the dropped bytes are missing; `None` where nothing was dropped.
    pub gap_at: Option<u64>,
    /// Whether a process outside our reach still held the stream open when capturing stopped.
    pub still_open: bool,
    pub(super) write_error: Option<String>,
}

/// A command that ran and is over, with all that it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Why it is over.
    pub ending: Ending,
    pub(super) duration_ms: u64,
    /// Standard output, or both streams where they share a file.
    pub stdout: Captured,
    /// Standard error, where it has its own file.
    pub stderr: Option<Captured>,
    /// How many processes it had left behind when it ended, all of them killed.
    pub leftovers_killed: u32,
    /// How many processes could not be killed (another user's, or stuck in the kernel); 0 in all ordinary cases.
    pub survivors: u32,
    /// What confined it while it ran: `landlock-v7`, or `none: <why>`.
    pub confinement: String,
}

impl Finished {
    /// How long the command itself ran.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }
}
