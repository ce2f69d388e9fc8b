//! Why a review ends before its last stage, by what has to happen next.

use checkrein_shared::blob;
use checkrein_shared::bus::{ConsumeError, PublishError};
use checkrein_shared::coordinator;
use checkrein_shared::records::Judgement;

use crate::check::Raised;

/// Why a review could not be carried out now. It says nothing about what was to be reviewed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The blob store does not work.
    #[error("the blob store does not answer while {doing}")]
    Blobs {
        /// What was being done.
        doing: String,
        /// The cause.
        source: blob::Error,
    },
    /// The orchestrator does not answer.
    #[error("can't ask what is current")]
    Coordinator(#[source] coordinator::Error),
    /// The verdict was not taken.
    #[error("can't publish the verdict")]
    Publish(#[source] PublishError),
    /// The verdict has no canonical form.
    #[error("can't write the verdict: {0}")]
    Verdict(String),
    /// The reviewer is being shut down.
    #[error("the reviewer is being shut down")]
    Interrupted,
}

/// Why a reviewer could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its own folder can't be used.
    #[error("can't use the work folder `{path}`")]
    WorkDir {
        /// The folder.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A pool's name is no name, or there is none.
    #[error("can't review for pool `{pool}`: {reason}")]
    Pool {
        /// The pool.
        pool: String,
        /// Why not.
        reason: String,
    },
    /// Its queues can't be consumed.
    #[error("can't take review requests")]
    Consume(#[source] ConsumeError),
}

/// Why a stage ends the review.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nothing can be said now: the request has to come again.
    Again(Error),
    /// There is an answer already, and it is no approval.
    Answer(Early),
}

/// An answer that a stage before the judgement gives.
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) judgement: Judgement,
    pub(crate) raised: Vec<Raised>,
    /// What kept the review from going on.
    pub(crate) reasons: Vec<String>,
}

impl Stop {
    /// The reviewer can't tell, for this reason.
    pub(crate) fn unclear(reason: impl Into<String>) -> Self {
        Self::Answer(Early { judgement: Judgement::Inconclusive, raised: Vec::new(), reasons: vec![reason.into()] })
    }

    /// What follows from a blob that can't be read: a lost or damaged one stays so, a failing store may recover.
    pub(crate) fn of_blob(what: &str, error: blob::Error) -> Self {
        match error {
            blob::Error::Io { .. } => Self::Again(Error::Blobs { doing: format!("reading {what}"), source: error }),
            other => Self::unclear(format!("{what} can't be read: {other}")),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Again(error)
    }
}
