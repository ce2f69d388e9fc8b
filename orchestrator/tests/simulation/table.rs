//! The table of guards in `docs/assurance.md`, held against the code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) guard: String,
    /// The number of the invariant that it holds.
    pub(crate) invariant: u32,
    pub(crate) seed: u64,
    /// What the oracle says.
    pub(crate) says: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the table: `| guard | invariant | seed | what the oracle says |`.
pub(crate) fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("docs/assurance.md")).expect("docs/assurance.md is there");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = |cells: Vec<String>| match cells.as_slice() {
        [_, guard, holds, seed, says, _] => {
            let (seed, invariant) = (seed.parse().ok()?, holds.split(':').next()?.parse().ok()?);
            Some(Row { guard: guard.trim_matches('`').to_owned(), invariant, seed, says: says.clone() })
        }
        _ => None,
    };
    text.lines().filter(|line| line.starts_with("| `")).map(cells).filter_map(row).collect()
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(&path).expect("a source file"));
        }
    }
}

#[test]
fn every_guard_of_the_code_stands_in_the_table_and_the_other_way_round() {
    let mut texts = Vec::new();
    sources(&root().join("orchestrator/src"), &mut texts);
    let mut code = BTreeSet::new();
    for text in &texts {
        for rest in text.split("guard!(").skip(1) {
            let name: String = rest.trim_start().chars().take_while(char::is_ascii_alphanumeric).collect();
            if !name.is_empty() && name != "Name" {
                code.insert(name);
            }
        }
    }
    let table: BTreeSet<String> = rows().into_iter().map(|row| row.guard).collect();
    assert_eq!(code, table);
}

#[test]
fn each_of_the_first_ten_invariants_has_a_guard_that_is_tried() {
    let held: BTreeSet<u32> = rows().into_iter().map(|row| row.invariant).collect();
    assert_eq!(held, (1..=10).collect());
}
