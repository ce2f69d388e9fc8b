//! The effects ledger in the store: rows in, entries out.
//!
//! Entries are written only by what the core decides (see
//! [`crate::lifecycle`]); this module reads them.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::EffectEntry;
use serde::Deserialize as _;
use serde_json::Value;

use crate::engine::Error;
use crate::lifecycle::{EFFECT_TABLE, EventKind, Task};
use crate::store::Store;

/// The entries that a decision about `event` may look at and change: of the task's open effects, and of the one that
/// the event is about.
pub(crate) async fn for_decision(
    store: &dyn Store,
    task: &Task,
    event: &EventKind,
) -> Result<BTreeMap<Digest, EffectEntry>, Error> {
    let mut keys: BTreeSet<Digest> = task.effects.iter().map(|open| open.key).collect();
    keys.extend(event.effect_key(&task.id));
    let mut entries = BTreeMap::new();
    for key in keys {
        if let Some(found) = entry(store, &task.id, &key).await? {
            entries.insert(key, found);
        }
    }
    Ok(entries)
}

/// One entry.
pub(crate) async fn entry(store: &dyn Store, task: &TaskId, key: &Digest) -> Result<Option<EffectEntry>, Error> {
    let row = store.row(task, EFFECT_TABLE, &key.to_hex()).await?;
    row.map(|value| read(task, value)).transpose()
}

/// Up to `limit` entries in the order of tasks and keys, those after `after`; only those of `task` where one is given.
pub(crate) async fn page(
    store: &dyn Store,
    task: Option<&TaskId>,
    after: Option<(&TaskId, &Digest)>,
    limit: usize,
) -> Result<Vec<EffectEntry>, Error> {
    let after = after.map(|(task, key)| (task, key.to_hex()));
    let after = after.as_ref().map(|(task, key)| (*task, key.as_str()));
    let rows = store.rows(EFFECT_TABLE, task, after, limit).await?;
    rows.into_iter().map(|row| read(&row.task, row.value)).collect()
}

fn read(task: &TaskId, value: Value) -> Result<EffectEntry, Error> {
    EffectEntry::deserialize(value)
        .map_err(|e| Error::State { task: task.clone(), why: format!("an entry of its effects ledger: {e}") })
}
