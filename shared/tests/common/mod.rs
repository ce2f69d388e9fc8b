//! The golden records in `tests/golden`, for the tests that read them. Each
//! file is called `<schema>.json` or `<schema>.<variant>.json`.

use std::path::{Path, PathBuf};

use checkrein_shared::json;
use checkrein_shared::records::{
    Attempt, Checkpoint, CheckpointMessage, EffectEntry, EvidenceIndex, Job, JobMessage, Plan, ResultFile,
    ReviewRequest, TaskSpec, TestRun, Verdict, VerdictMessage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record in a file.
pub(crate) struct Golden {
    /// The file's name without `.json`.
    pub(crate) name: String,
    /// The name of its schema.
    pub(crate) schema: String,
    /// What stands in the file.
    pub(crate) text: Vec<u8>,
}

/// The folder with the golden files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every golden record, by name.
pub(crate) fn records() -> Vec<Golden> {
    let entries = std::fs::read_dir(folder().join("records")).expect("the golden records are there");
    let mut records: Vec<Golden> = entries.map(|entry| read(&entry.unwrap().path())).collect();
    records.sort_by(|a, b| a.name.cmp(&b.name));
    records
}

fn read(path: &Path) -> Golden {
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let schema = name.split('.').next().unwrap().to_owned();
    Golden { name, schema, text: std::fs::read(path).unwrap() }
}

/// Reads a text as the record of that schema, and writes it canonically again.
///
/// # Errors
///
/// What the record's reader says of the text.
pub(crate) fn rewrite(schema: &str, text: &[u8]) -> Result<Vec<u8>, json::Error> {
    match schema {
        "attempt" => through::<Attempt>(text),
        "checkpoint" => through::<Checkpoint>(text),
        "checkpoint-message" => through::<CheckpointMessage>(text),
        "effect" => through::<EffectEntry>(text),
        "evidence-index" => through::<EvidenceIndex>(text),
        "job" => through::<Job>(text),
        "job-message" => through::<JobMessage>(text),
        "plan" => through::<Plan>(text),
        "result-file" => through::<ResultFile>(text),
        "review-request" => through::<ReviewRequest>(text),
        "task" => through::<TaskSpec>(text),
        "test-run" => through::<TestRun>(text),
        "verdict" => through::<Verdict>(text),
        "verdict-message" => through::<VerdictMessage>(text),
        other => panic!("no record has the schema `{other}`: add it here, with a golden record"),
    }
}

fn through<T: DeserializeOwned + Serialize>(text: &[u8]) -> Result<Vec<u8>, json::Error> {
    json::canonical(&json::parse_as::<T>("record", text)?)
}
