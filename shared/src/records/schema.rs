//! The JSON Schemas of records, for people who write workers, reviewers or
//! agents in other languages.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::{
    Attempt, Checkpoint, CheckpointMessage, EffectEntry, EvidenceIndex, Job, JobMessage, Plan, ResultFile,
    ReviewRequest, TaskSpec, TestRun, Verdict, VerdictMessage,
};

fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

/// Name and schema of each published record, by name.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("attempt", schema::<Attempt>()),
        ("checkpoint", schema::<Checkpoint>()),
        ("checkpoint-message", schema::<CheckpointMessage>()),
        ("effect", schema::<EffectEntry>()),
        ("evidence-index", schema::<EvidenceIndex>()),
        ("job", schema::<Job>()),
        ("job-message", schema::<JobMessage>()),
        ("plan", schema::<Plan>()),
        ("result-file", schema::<ResultFile>()),
        ("review-request", schema::<ReviewRequest>()),
        ("task", schema::<TaskSpec>()),
        ("test-run", schema::<TestRun>()),
        ("verdict", schema::<Verdict>()),
        ("verdict-message", schema::<VerdictMessage>()),
    ]
}
