//! Everybody's keys, the same in every simulation: making keys is dear, and nothing here rests on chance.

use std::sync::{Arc, LazyLock};

use checkrein_shared::ids::InstanceId;
use checkrein_shared::records::Role;
use checkrein_shared::signing::{KeyRecord, KeyRing, SigningKey};
use checkrein_shared::time::Timestamp;
use zeroize::Zeroizing;

/// How many reviewers there are at most.
pub(crate) const REVIEWERS_MAX: usize = 3;

pub(crate) struct Keys {
    pub(crate) ring: Arc<KeyRing>,
    /// The keys of reviewers that are known.
    pub(crate) reviewers: Vec<SigningKey>,
    /// A worker's key: known, and no reviewer's.
    pub(crate) worker: SigningKey,
    /// A key that nobody knows.
    pub(crate) stranger: SigningKey,
}

pub(crate) fn reviewer(number: usize) -> InstanceId {
    format!("reviewer-{number}").parse().expect("an id")
}

pub(crate) fn worker(number: usize) -> InstanceId {
    format!("worker-{number}").parse().expect("an id")
}

pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let key = |number: u8| SigningKey::from_random(&Zeroizing::new([number; 32]));
    let since = Timestamp::from_millis(0);
    let mut ring = KeyRing::new();
    let mut reviewers = Vec::new();
    for number in 0..REVIEWERS_MAX {
        let key = key(u8::try_from(number).expect("few") + 1);
        ring.add(KeyRecord::new(key.public_key(), Role::Reviewer, reviewer(number), since)).expect("a usable key");
        reviewers.push(key);
    }
    let worker_key = key(100);
    ring.add(KeyRecord::new(worker_key.public_key(), Role::Worker, worker(0), since)).expect("a usable key");
    Keys { ring: Arc::new(ring), reviewers, worker: worker_key, stranger: key(200) }
});
