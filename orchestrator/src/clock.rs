//! Leases, by the monotonic clock. They are not durable: after a restart every
//! running attempt gets a full lease again, and expiry is what is durable.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkrein_shared::ids::TaskId;

/// How long an attempt may go without a heartbeat.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The leases that are out.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    inner: Mutex<HashMap<TaskId, (u64, Instant)>>,
}

impl Leases {
    /// Gives an attempt a full lease.
    pub(crate) fn arm(&self, task: &TaskId, epoch: u64) {
        let until = Instant::now() + LEASE;
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
        let now = Instant::now();
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
        let now = Instant::now();
        self.lock().values().map(|(_, until)| until.saturating_duration_since(now)).min()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, (u64, Instant)>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
