//! The exit codes: one list, in the help and in the code.

use std::process::ExitCode;

use checkrein_shared::api::TaskState;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to do; for `run`: the task is completed.
    Completed,
    /// It could not: a file, a lock, a server.
    Unable,
    /// The command line or a file that it names makes no sense.
    Usage,
    /// The task is blocked.
    Blocked,
    /// The task waits for a person.
    Waiting,
    /// The task failed.
    Failed,
    /// The task was cancelled.
    Cancelled,
    /// Stored data is damaged.
    Integrity,
    /// A signal ended it; the task is parked.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Unable => 1,
            Self::Usage => 2,
            Self::Blocked => 3,
            Self::Waiting => 4,
            Self::Failed => 5,
            Self::Cancelled => 6,
            Self::Integrity => 7,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What `run` returns for a task that was left in this state.
impl From<TaskState> for Exit {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Completed => Self::Completed,
            TaskState::Blocked => Self::Blocked,
            TaskState::Waiting | TaskState::Held | TaskState::Paused => Self::Waiting,
            TaskState::Failed => Self::Failed,
            TaskState::Cancelled | TaskState::Cancelling => Self::Cancelled,
            TaskState::Queued | TaskState::Running | TaskState::Reviewing => Self::Interrupted,
        }
    }
}

/// The list as the help shows it.
pub(crate) const HELP: &str = "\
Exit codes:
    0  done; for `run`: the task is completed
    1  could not be done: a file, a lock, a server that does not answer
    2  the command line, or a file that it names, makes no sense
    3  the task is blocked
    4  the task waits for a person (also: paused, or taken over)
    5  the task failed
    6  the task was cancelled
    7  stored data is damaged
  130  interrupted; the task is parked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        use Exit::*;
        for exit in [Completed, Unable, Usage, Blocked, Waiting, Failed, Cancelled, Integrity, Interrupted] {
            let start = format!("{:>5}  ", exit.code());
            assert!(HELP.lines().any(|line| line.starts_with(&start)), "{exit:?}");
        }
        assert_eq!(HELP.lines().count(), 10);
    }
}
