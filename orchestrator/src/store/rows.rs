//! Rows: values of a task that are many, beside its one state.
//!
//! A state is written whole with every event, so what may grow without bound (a
//! ledger, a history) lies in rows instead: each is written when it changes. A row
//! has a table, a task and a key. What is in it is as opaque as the state.

use checkrein_shared::ids::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many rows one commit may change.
pub const ROWS_MAX: usize = 256;

/// The longest name of a table, in bytes.
const TABLE_BYTES_MAX: usize = 16;

/// The longest key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// What happens to a row of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RowChange {
    /// It is written, or replaced as a whole.
    Put {
        /// Its table: a short word, such as `effect`.
        table: String,
        /// Its key, unique within the table and the task.
        key: String,
        /// What it holds.
        value: Value,
    },
    /// It is removed; removing what is not there does nothing.
    Remove {
        /// Its table.
        table: String,
        /// Its key.
        key: String,
    },
}

impl RowChange {
    /// The table and the key.
    pub fn name(&self) -> (&str, &str) {
        match self {
            Self::Put { table, key, .. } | Self::Remove { table, key } => (table, key),
        }
    }
}

/// A row as it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The task that it belongs to.
    pub task: TaskId,
    /// Its key.
    pub key: String,
    /// What it holds.
    pub value: Value,
}

/// Whether this can be the name of a table: 1 to 16 lower-case letters, digits and hyphens.
pub(super) fn is_table(table: &str) -> bool {
    let valid = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=TABLE_BYTES_MAX).contains(&table.len()) && table.bytes().all(valid)
}

/// Whether this can be the key of a row: 1 to 256 printable ASCII characters without spaces.
pub(super) fn is_key(key: &str) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_keys_have_no_room_for_separators() {
        assert!(is_table("effect") && is_table("a-1") && is_table(&"t".repeat(16)));
        for bad in ["", "Effect", "a b", "a\0", "é", &"t".repeat(17)] {
            assert!(!is_table(bad), "{bad:?}");
        }
        assert!(is_key("sha256:0f/3") && is_key(&"k".repeat(256)));
        for bad in ["", "a b", "a\0", "a\n", "é", &"k".repeat(257)] {
            assert!(!is_key(bad), "{bad:?}");
        }
    }
}
