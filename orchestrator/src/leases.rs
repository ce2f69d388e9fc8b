//! Leases, by the monotonic clock. They are not durable: after a restart every
//! running attempt gets a full lease again, and expiry is what is durable.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checkrein_shared::ids::TaskId;

use crate::clock::Clock;

/// How long an attempt may go without a heartbeat.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The leases that are out.
pub(crate) struct Leases {
    clock: Arc<dyn Clock>,
    /// Which attempt holds each task, and until when.
    inner: Mutex<BTreeMap<TaskId, (u64, Duration)>>,
}

impl Leases {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, inner: Mutex::default() }
    }

    /// Gives an attempt a full lease.
    pub(crate) fn arm(&self, task: &TaskId, epoch: u64) {
        let until = self.clock.monotonic() + LEASE;
        let mut leases = self.lock();
        // A late heartbeat of a replaced attempt must not shorten or hide the new one's lease.
        if leases.get(task).is_none_or(|(held, _)| *held <= epoch) {
            leases.insert(task.clone(), (epoch, until));
        }
    }

    /// Ends the lease of an attempt, if it is still that attempt's.
    pub(crate) fn drop_lease(&self, task: &TaskId, epoch: u64) {
        let mut leases = self.lock();
        if leases.get(task).is_some_and(|(held, _)| *held == epoch) {
            leases.remove(task);
        }
    }

    /// Takes the leases that have run out.
    pub(crate) fn take_expired(&self) -> Vec<(TaskId, u64)> {
        let now = self.clock.monotonic();
        let mut leases = self.lock();
        let expired: Vec<_> =
            leases.iter().filter(|(_, (_, until))| *until <= now).map(|(t, (e, _))| (t.clone(), *e)).collect();
        for (task, _) in &expired {
            leases.remove(task);
        }
        expired
    }

    /// How long until the next one runs out.
    pub(crate) fn next(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        self.lock().values().map(|(_, until)| until.saturating_sub(now)).min()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TaskId, (u64, Duration)>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use checkrein_shared::time::Timestamp;

    use super::*;

    /// A clock that a test turns.
    #[derive(Default)]
    struct Turned(Mutex<Duration>);

    impl Clock for Turned {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn a_late_heartbeat_of_a_replaced_attempt_neither_renews_nor_ends_the_new_lease() {
        let clock = Arc::new(Turned::default());
        let leases = Leases::new(clock.clone());
        let task: TaskId = "t-1".parse().unwrap();
        leases.arm(&task, 2);
        *clock.0.lock().unwrap() = LEASE - Duration::from_millis(1);
        leases.arm(&task, 1);
        leases.drop_lease(&task, 1);
        assert_eq!(leases.take_expired(), Vec::new());
        assert_eq!(leases.next(), Some(Duration::from_millis(1)));
        *clock.0.lock().unwrap() = LEASE;
        assert_eq!(leases.take_expired(), vec![(task, 2)]);
        assert_eq!(leases.next(), None);
    }
}
