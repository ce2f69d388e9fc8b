//! Lays out what a command agent reads: the instruction, and beside it the
//! texts of the evidence that required actions point to.
//!
//! The words of the instruction are in [`crate::instruction`].

use std::io;
use std::path::{Path, PathBuf};

use checkrein_shared::json;
use checkrein_shared::records::{EvidenceKind, EvidenceRef, Step, TestRun};

use crate::desk::{Desk, JobError};
use crate::instruction::{self, Brief};
use crate::recorder::Recorder;
use crate::room::Room;

/// The most texts that are laid out.
const TEXTS_MAX: usize = 50;

/// The largest text that is laid out.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Writes the instruction of a prompt step; returns its path.
pub(crate) async fn lay_out(
    desk: &Desk,
    room: &Room,
    recorder: &Recorder,
    (step, prompt, told): (&Step, &str, Option<&str>),
    attempt: u64,
) -> Result<PathBuf, JobError> {
    let mut texts = Vec::new();
    for reference in wanted(desk, recorder).await {
        if let Some(bytes) = fetch(desk, recorder, &reference).await {
            let path = room.brief().join(file_name(texts.len() + 1, &reference));
            write(&path, &bytes).await?;
            texts.push((reference, path));
        }
    }
    let mut citable: Vec<_> = recorder.known().iter().filter(|(r, _)| r.kind() != EvidenceKind::File).collect();
    citable.sort_by_key(|(_, evidence)| std::cmp::Reverse(evidence.created_at));
    let brief = Brief {
        spec: &desk.spec,
        step: step.id.as_str(),
        prompt,
        attempt,
        told,
        required: &desk.job.required_actions,
        citable,
        texts: &texts,
    };
    let path = room.brief().join("instruction.md");
    write(&path, instruction::write(&brief).as_bytes()).await?;
    Ok(path)
}

/// What the required actions point to, and the outputs of the tests among it.
async fn wanted(desk: &Desk, recorder: &Recorder) -> Vec<EvidenceRef> {
    let mut wanted: Vec<EvidenceRef> = Vec::new();
    let mut add = |reference: EvidenceRef| {
        if wanted.len() < TEXTS_MAX && !wanted.contains(&reference) {
            wanted.push(reference);
        }
    };
    for reference in desk.job.required_actions.iter().flat_map(|action| &action.refs) {
        match reference.kind() {
            EvidenceKind::File => continue,
            EvidenceKind::Test => {
                let run = fetch(desk, recorder, reference).await;
                let run = run.and_then(|bytes| json::parse_as::<TestRun>("test run", &bytes).ok());
                add(reference.clone());
                run.into_iter().for_each(|run| add(run.log));
            }
            _ => add(reference.clone()),
        }
    }
    wanted
}

/// An artifact that is missing is missing for the agent too: the instruction then names it without a path.
async fn fetch(desk: &Desk, recorder: &Recorder, reference: &EvidenceRef) -> Option<Vec<u8>> {
    let evidence = recorder.get(reference)?;
    match desk.services.blobs.get(evidence.digest, TEXT_BYTES_MAX).await {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            tracing::warn!(%reference, %error, "evidence that the agent should see can't be read");
            None
        }
    }
}

fn file_name(number: usize, reference: &EvidenceRef) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = reference.as_str().chars().take(80).map(safe).collect();
    format!("{number:02}-{name}.txt")
}

async fn write(path: &Path, bytes: &[u8]) -> Result<(), JobError> {
    let failed = |e: io::Error| JobError::Io("write the agent's instruction", e);
    tokio::fs::write(path, bytes).await.map_err(failed)
}
