//! Virtual time: one counter of milliseconds, and a wall clock beside it that may jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use checkrein_orchestrator::Clock;
use checkrein_shared::time::Timestamp;

/// When every simulation begins: 2027-01-15, a Friday.
const BEGINNING: i64 = 1_800_000_000_000;

pub(crate) struct SimClock {
    pub(crate) millis: Arc<AtomicU64>,
    /// How far the wall clock is off.
    pub(crate) skew: AtomicI64,
}

impl SimClock {
    pub(crate) fn new(millis: Arc<AtomicU64>) -> Self {
        Self { millis, skew: AtomicI64::new(0) }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.millis.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        Timestamp::from_millis(BEGINNING + millis + self.skew.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}
