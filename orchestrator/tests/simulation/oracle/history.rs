//! What left the state and stays as a row: whatever is not in the state any more must be there, unchanged but for what
//! made it stale, and nothing there ever changes, goes, or comes back.

use std::collections::BTreeMap;

use checkrein_orchestrator::lifecycle::{GRANT_TABLE, Grant, GrantStatus, RULING_TABLE, Ruling, Task};
use checkrein_orchestrator::lifecycle::{VERDICT_TABLE, VerdictState};
use checkrein_orchestrator::store::{Record, RowChange};
use checkrein_shared::ids::GrantId;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Everything that a task has in rows.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// All rows, as they have to be in the store: by table and key.
    rows: BTreeMap<(String, String), Value>,
    pub(super) verdicts: Vec<VerdictState>,
    grants: Vec<Grant>,
    rulings: Vec<Ruling>,
    /// How many of them the newest record has brought.
    fresh: (usize, usize, usize),
}

impl History {
    /// Takes what a record does to rows.
    pub(super) fn follow(&mut self, record: &Record) -> Result<(), String> {
        self.fresh = (self.verdicts.len(), self.grants.len(), self.rulings.len());
        for change in &record.rows {
            self.change(change)?;
        }
        Ok(())
    }

    fn change(&mut self, change: &RowChange) -> Result<(), String> {
        let (table, key) = change.name();
        let name = (table.to_owned(), key.to_owned());
        let past = [VERDICT_TABLE, GRANT_TABLE, RULING_TABLE].contains(&table);
        match change {
            RowChange::Remove { .. } if past => return Err(format!("the {table} {key} is forgotten")),
            RowChange::Remove { .. } => drop(self.rows.remove(&name)),
            RowChange::Put { value, .. } => {
                match table {
                    VERDICT_TABLE => self.verdicts.push(read(table, value)?),
                    GRANT_TABLE => self.grants.push(read(table, value)?),
                    RULING_TABLE => self.rulings.push(read(table, value)?),
                    _ => {}
                }
                let earlier = self.rows.insert(name, value.clone());
                if past && earlier.is_some() {
                    return Err(format!("the {table} {key} left the state twice"));
                }
            }
        }
        Ok(())
    }

    /// The rows of one table, by key.
    pub(super) fn table(&self, name: &str) -> BTreeMap<String, Value> {
        let mine = self.rows.iter().filter(|((table, _), _)| table == name);
        mine.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    /// The verdicts that have left the state with the newest record.
    pub(super) fn fresh_verdicts(&self) -> &[VerdictState] {
        &self.verdicts[self.fresh.0..]
    }

    /// The grants that have left the state with the newest record.
    pub(super) fn fresh_grants(&self) -> &[Grant] {
        &self.grants[self.fresh.1..]
    }

    /// A grant that has left the state.
    pub(super) fn grant(&self, id: &GrantId) -> Option<&Grant> {
        self.grants.iter().find(|grant| grant.id == *id)
    }

    /// All verdicts that there ever were: those that are history, and those of the state.
    pub(super) fn all_verdicts<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a VerdictState> + Clone {
        self.verdicts.iter().chain(&task.verdicts)
    }
}

fn read<T: DeserializeOwned>(table: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("a row of `{table}` can't be read: {error}"))
}

/// Nothing is in the state and in the past at once, and the rulings are all somewhere.
pub(super) fn check(history: &History, before: &Task, next: &Task) -> Option<String> {
    let verdict = history.verdicts.iter().find(|past| next.verdicts.iter().any(|v| super::verdicts::same(v, past)));
    if let Some(verdict) = verdict {
        return Some(format!("the verdict of {} is history, and in the state", verdict.id));
    }
    for grant in &history.grants {
        if next.grants.iter().any(|g| g.id == grant.id) {
            return Some(format!("{} is history, and in the state", grant.id));
        }
        if !matches!(grant.status, GrantStatus::Settled {} | GrantStatus::Void { .. }) {
            return Some(format!("{} is history as {:?}", grant.id, grant.status));
        }
    }
    let fresh = &history.rulings[history.fresh.2..];
    let lost = before.rulings.iter().find(|old| !next.rulings.contains(old) && !fresh.contains(old));
    if let Some(lost) = lost {
        return Some(format!("the ruling of `{}` about event {} has vanished", lost.rule, lost.version));
    }
    let decided = |ruling: &&Ruling| before.rulings.contains(ruling) || !history.rulings.contains(ruling);
    let again = next.rulings.iter().find(|ruling| !decided(ruling));
    again.map(|ruling| format!("the ruling of `{}` about event {} came back", ruling.rule, ruling.version))
}
