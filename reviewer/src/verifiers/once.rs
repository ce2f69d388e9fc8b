//! One run of one verifier on one tree.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::process::{self, Command, Confinement, Ending, Finished, Limits, Output, Refusal};
use checkrein_shared::records::{EvidenceIndex, TestRun};

use super::copy::Place;
use super::evidence::Log;
use super::from_base::Restored;
use super::run::Job;
use super::{Attempt, Trouble};
use crate::quote;

/// How much of a verifier's output is kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// How long a verifier may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the job's verifier on a tree with the digest `tree`.
pub(super) async fn run_once(
    job: &Job<'_>,
    restored: &Restored,
    tree: Digest,
    which: &str,
) -> Result<(Attempt, EvidenceIndex), Trouble> {
    let place = Place::make(&job.workshop.work_dir, job.blobs, &restored.manifest).await?;
    let result = in_place(job, &place, restored, tree, which).await;
    place.close().await;
    result
}

async fn in_place(
    job: &Job<'_>,
    place: &Place,
    restored: &Restored,
    tree: Digest,
    which: &str,
) -> Result<(Attempt, EvidenceIndex), Trouble> {
    if !job.verifier.carry.is_empty() {
        let target = job.target.ok_or_else(|| Trouble::Here("the target is not on this host".to_owned()))?;
        place.carry(target, &job.verifier.carry).await?;
    }
    let program = find(job, place)?;
    let output_file = place.out().join("log");
    let (ending, output) = match program {
        Program::Missing(why) => (Ended::never(why), Vec::new()),
        Program::Found => {
            let finished = start(job, place, &output_file).await?;
            let output = tokio::fs::read(&output_file).await.map_err(|e| Trouble::Here(e.to_string()))?;
            (Ended::of(&finished)?, output)
        }
    };
    let head = header(job, place, restored, tree, &ending);
    store(job, head, tree, which, ending, output).await
}

/// How a run ended, with the facts that its evidence states.
struct Ended {
    exit_code: Option<i64>,
    timed_out: bool,
    duration_ms: u64,
    dropped_bytes: u64,
    gap_at: Option<u64>,
    note: String,
}

impl Ended {
    fn never(why: String) -> Self {
        Self { exit_code: None, timed_out: false, duration_ms: 0, dropped_bytes: 0, gap_at: None, note: why }
    }

    fn of(finished: &Finished) -> Result<Self, Trouble> {
        let (exit_code, timed_out, ended) = match finished.ending {
            Ending::Exited(code) => (Some(i64::from(code)), false, format!("exit code {code}")),
            Ending::Signalled(signal) => (None, false, format!("signal {signal}")),
            Ending::TimedOut => (None, true, "the time limit".to_owned()),
            Ending::Cancelled => return Err(Trouble::Interrupted),
        };
        let mut note = format!("ended by {ended}; confinement {}", finished.confinement);
        if finished.leftovers_killed > 0 {
            note.push_str(&format!("; {} processes that it left behind were killed", finished.leftovers_killed));
        }
        Ok(Self {
            exit_code,
            timed_out,
            duration_ms: u64::try_from(finished.duration().as_millis()).unwrap_or(u64::MAX),
            dropped_bytes: finished.stdout.bytes_dropped,
            gap_at: finished.stdout.gap_at,
            note,
        })
    }
}

enum Program {
    Found,
    Missing(String),
}

/// Looks for the program before anything starts, as a wrapper's own failure would be taken for the verifier's.
fn find(job: &Job<'_>, place: &Place) -> Result<Program, Trouble> {
    let name = job.verifier.argv.first().map_or("", String::as_str);
    let shown = quote::line(name);
    if name.contains('/') {
        // A program of the tree itself: where the change removed it, the verifier fails and is not merely unavailable.
        let there = place.tree().join(name).exists();
        return Ok(if there {
            Program::Found
        } else {
            Program::Missing(format!("`{shown}` does not exist in the tree"))
        });
    }
    match is_on_path(name, &job.workshop.path) {
        true => Ok(Program::Found),
        false => Err(Trouble::Here(format!("`{shown}` is not installed where the reviewer runs"))),
    }
}

fn is_on_path(name: &str, path: &OsStr) -> bool {
    !name.is_empty() && std::env::split_paths(path).any(|folder| folder.join(name).is_file())
}

async fn start(job: &Job<'_>, place: &Place, output: &Path) -> Result<Finished, Trouble> {
    let argv: Vec<OsString> = job.verifier.argv.iter().map(OsString::from).collect();
    let usual = &job.workshop.supervisor;
    let supervisor = if job.verifier.offline { job.workshop.isolation.apply(usual) } else { usual.clone() };
    let limits = Limits { time: job.verifier.timeout, grace: GRACE, output_bytes_max: OUTPUT_BYTES_MAX };
    let hidden = job.workshop.hidden.iter().cloned().chain(job.target.map(Path::to_owned));
    let writable = [place.tree(), place.home(), place.tmp()];
    let command = Command::new(argv, place.tree(), Output::Merged(output.to_owned()), limits)
        .envs(job.workshop.tools_env.clone())
        .env("PATH", &job.workshop.path)
        .env("HOME", place.home())
        .env("TMPDIR", place.tmp())
        .env("LANG", "C.UTF-8")
        .env("CI", "true")
        .confined(Confinement::new(writable, hidden, job.confinement_required));
    let run = command.run(&supervisor, job.cancel.cancelled()).await;
    run.map_err(|error| match error {
        process::Error::Refused(Refusal::Unconfined { reason }) => {
            Trouble::Here(format!("the policy wants verifiers confined, and here they can't be: {reason}"))
        }
        other => Trouble::Here(with_causes(&other)),
    })
}

async fn store(
    job: &Job<'_>,
    head: String,
    tree: Digest,
    which: &str,
    ended: Ended,
    output: Vec<u8>,
) -> Result<(Attempt, EvidenceIndex), Trouble> {
    let clean = job.redaction.clean_log(&output, ended.gap_at);
    let mut text = head.into_bytes();
    text.extend_from_slice(&clean.bytes);
    let dropped_bytes = ended.dropped_bytes + clean.dropped_bytes;
    let log = Log { text, output: clean.bytes, redactions: clean.redactions, dropped_bytes };
    let run = TestRun {
        command: job.verifier.argv.clone(),
        tree,
        exit_code: ended.exit_code,
        timed_out: ended.timed_out,
        duration_ms: ended.duration_ms,
        log: job.maker.log_ref(&job.verifier.name, which),
    };
    Ok(job.maker.store(job.blobs, &job.verifier.name, which, run, log).await?)
}

/// The facts about a run that its record has no field for.
fn header(job: &Job<'_>, place: &Place, restored: &Restored, tree: Digest, ended: &Ended) -> String {
    let network = match job.verifier.offline {
        true => job.workshop.isolation.describe(),
        false => "full, as the policy says".to_owned(),
    };
    let mut text = format!("# checkrein reviewer: tree {tree}\n# {}\n# network: {network}\n", ended.note);
    for (what, paths) in [
        ("restored from the base", quote::list(&restored.restored)),
        ("new files by which it is measured", quote::list(&restored.added)),
        ("not in the blob store, so absent", quote::list(&place.absent)),
    ] {
        if !paths.is_empty() {
            text.push_str(&format!("# {what}: {paths}\n"));
        }
    }
    text.push('\n');
    text
}
