//! The clock as the orchestrator sees it: injected, so that a simulation can
//! turn it. Nothing but [`SystemClock`] reads the machine's.

use std::time::{Duration, Instant};

use checkrein_shared::time::Timestamp;

/// Wall time for records and people, monotonic time for leases.
pub trait Clock: Send + Sync {
    /// What a clock on the wall shows. It may jump.
    fn now(&self) -> Timestamp;

    /// Time since some moment before the orchestrator started. It never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
