//! The names of queues, and of the pools that share one.
//!
//! How a queue is called on a broker is the business of the bus that talks to it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name of a pool, in bytes: `root.` and an id fit.
const POOL_BYTES_MAX: usize = 128;

/// Text that is no name of a pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pool: use 1 to 128 letters, digits, `.`, `_` or `-`, beginning with a letter or digit")]
pub struct InvalidPool(pub String);

/// Text that is no name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a queue: expected `jobs.POOL`, `reviews.POOL`, `in.worker`, `in.reviewer` or `dead`")]
pub struct InvalidQueue(pub String);

/// A group of workers or reviewers that take work from one queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool(String);

impl Pool {
    /// The name of the pool.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pool {
    type Error = InvalidPool;
    fn try_from(value: String) -> Result<Self, InvalidPool> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let valid = value.len() <= POOL_BYTES_MAX
            && value.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && value.bytes().all(legal);
        if valid { Ok(Self(value)) } else { Err(InvalidPool(value)) }
    }
}

impl FromStr for Pool {
    type Err = InvalidPool;
    fn from_str(value: &str) -> Result<Self, InvalidPool> {
        Self::try_from(value.to_owned())
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> String {
        pool.0
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A queue, by its name. As text it is what docs and logs show: `jobs.default`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Queue {
    /// Jobs for the workers of a pool; only the orchestrator writes it.
    Jobs(Pool),
    /// Review requests for the reviewers of a pool; only the orchestrator writes it.
    Reviews(Pool),
    /// What workers report to the orchestrator.
    InWorker,
    /// What reviewers report to the orchestrator.
    InReviewer,
    /// Messages that nobody can handle; the orchestrator escalates them.
    Dead,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs(pool) => write!(f, "jobs.{pool}"),
            Self::Reviews(pool) => write!(f, "reviews.{pool}"),
            Self::InWorker => f.write_str("in.worker"),
            Self::InReviewer => f.write_str("in.reviewer"),
            Self::Dead => f.write_str("dead"),
        }
    }
}

impl TryFrom<String> for Queue {
    type Error = InvalidQueue;
    fn try_from(value: String) -> Result<Self, InvalidQueue> {
        let pool = |prefix: &str| value.strip_prefix(prefix).and_then(|name| name.parse::<Pool>().ok());
        let queue = match value.as_str() {
            "in.worker" => Some(Self::InWorker),
            "in.reviewer" => Some(Self::InReviewer),
            "dead" => Some(Self::Dead),
            _ => pool("jobs.").map(Self::Jobs).or_else(|| pool("reviews.").map(Self::Reviews)),
        };
        queue.ok_or(InvalidQueue(value))
    }
}

impl FromStr for Queue {
    type Err = InvalidQueue;
    fn from_str(value: &str) -> Result<Self, InvalidQueue> {
        Self::try_from(value.to_owned())
    }
}

impl From<Queue> for String {
    fn from(queue: Queue) -> String {
        queue.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_survive_a_round_trip_and_others_are_refused() {
        for name in ["jobs.default", "jobs.root.r-1", "reviews.gpu_2", "in.worker", "in.reviewer", "dead"] {
            assert_eq!(name.parse::<Queue>().unwrap().to_string(), name);
        }
        for bad in ["", "jobs.", "jobs", "jobs.*", "jobs.-x", "jobs.a b", "in.operator", "Dead", "reviews.é"] {
            assert!(bad.parse::<Queue>().is_err(), "{bad}");
        }
        assert!(format!("jobs.{}", "x".repeat(129)).parse::<Queue>().is_err());
    }
}
