//! The local API over HTTP: paths and shapes, one place for server and client.
//!
//! Bodies are strict JSON, errors are problem documents (RFC 9457). The server
//! and the client live elsewhere; this module opens nothing.

use serde::{Deserialize, Serialize};

use super::{Action, Error};
use crate::digest::Digest;
use crate::ids::TaskId;

/// The name of the socket inside the data folder.
pub const SOCKET_FILE: &str = "checkrein.sock";

/// The longest time for which a request for events waits, in milliseconds.
pub const WAIT_MS_MAX: u64 = 30_000;

/// The largest request body that is no blob, in bytes.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// The media type of errors.
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// `GET`: who serves.
pub const HEALTH: &str = "/v1/health";
/// `GET`: all tasks. `POST`: submits one.
pub const TASKS: &str = "/v1/tasks";
/// `GET`: one task.
pub const TASK: &str = "/v1/tasks/{id}";
/// `GET`: events after `after`; waits up to `wait_ms` for the first.
pub const EVENTS: &str = "/v1/tasks/{id}/events";
/// `POST`: does something to the task.
pub const ACTIONS: &str = "/v1/tasks/{id}/actions";
/// `GET`: the chain.
pub const CHECKPOINTS: &str = "/v1/tasks/{id}/checkpoints";
/// `GET`: the artifacts.
pub const EVIDENCE: &str = "/v1/tasks/{id}/evidence";
/// `GET`: what waits for a person.
pub const INBOX: &str = "/v1/inbox";
/// `GET`: a page of the effects ledger.
pub const EFFECTS: &str = "/v1/effects";
/// `PUT`: stores a blob.
pub const BLOBS: &str = "/v1/blobs";
/// `GET`: the bytes of a blob.
pub const BLOB: &str = "/v1/blobs/{digest}";

/// `GET`: what is left of a task that was pruned.
pub const EPITAPH: &str = "/v1/tasks/{id}/epitaph";
/// `POST`: prunes and collects garbage.
pub const COLLECT: &str = "/v1/collect";

/// Puts a task or a digest into a path.
///
/// Ids and digests hold only characters that a path may hold.
pub fn fill(route: &str, value: &str) -> String {
    route.replace("{id}", value).replace("{digest}", value)
}

/// What the process that serves is there for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Serving {
    /// All tasks, until it is told to stop.
    All,
    /// One task, until that one rests.
    One(TaskId),
}

/// The answer of [`HEALTH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// The version of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// What it is there for.
    pub serving: Serving,
}

/// The answer to a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Created {
    /// The new task.
    pub id: TaskId,
}

/// The body for [`ACTIONS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActRequest {
    /// What is to be done.
    pub action: Action,
    /// Who does it.
    pub by: String,
}

/// The body for [`COLLECT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectRequest {
    /// Whether it is only said what would go.
    pub dry_run: bool,
}

/// The query of [`EVENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The newest event that the caller knows; 0 for all.
    #[serde(default)]
    pub after: u64,
    /// How long to wait for the first, at most [`WAIT_MS_MAX`].
    #[serde(default)]
    pub wait_ms: u64,
}

/// The query of [`EFFECTS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectsQuery {
    /// Only this task's; all tasks' where it is left out.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// The last entry's task, where a page goes on.
    #[serde(default)]
    pub after_task: Option<TaskId>,
    /// The last entry's key.
    #[serde(default)]
    pub after_key: Option<Digest>,
}

/// The answer to a stored blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Its name.
    pub digest: Digest,
}

/// An error, as the body of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A word for programs: `not-found`, `conflict`, `invalid`, `integrity` or `unavailable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for people.
    pub title: String,
    /// The response's status.
    pub status: u16,
    /// What happened.
    pub detail: String,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (kind, title, status) = match &error {
            Error::NotFound(_) => ("not-found", "There is no such thing", 404),
            Error::Conflict(_) => ("conflict", "It does not fit the state", 409),
            Error::Invalid(_) => ("invalid", "The request makes no sense", 400),
            Error::Integrity(_) => ("integrity", "Stored data is damaged", 500),
            Error::Unavailable(_) => ("unavailable", "Not possible now", 503),
        };
        Self { kind: kind.to_owned(), title: title.to_owned(), status, detail: error.to_string() }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        match problem.kind.as_str() {
            "not-found" => Self::NotFound(problem.detail),
            "conflict" => Self::Conflict(problem.detail),
            "invalid" => Self::Invalid(problem.detail),
            "integrity" => Self::Integrity(problem.detail),
            _ => Self::Unavailable(problem.detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_survives_its_way_through_a_problem_document() {
        let text = || "the reason".to_owned();
        for error in [
            Error::NotFound(text()),
            Error::Conflict(text()),
            Error::Invalid(text()),
            Error::Integrity(text()),
            Error::Unavailable(text()),
        ] {
            assert_eq!(Error::from(Problem::from(error.clone())), error);
        }
    }

    #[test]
    fn an_error_of_a_newer_server_is_no_success() {
        let problem = Problem { kind: "teapot".into(), title: String::new(), status: 418, detail: "short".into() };
        assert_eq!(Error::from(problem), Error::Unavailable("short".into()));
    }
}
