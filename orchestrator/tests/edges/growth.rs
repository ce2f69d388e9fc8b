//! A task of five hundred turns: what it writes grows with its turns, and no
//! faster.

use std::collections::BTreeSet;
use std::path::Path;

use checkrein_shared::api::TaskState;
use checkrein_shared::blob::Blobs as _;
use checkrein_shared::coordinator::{Receipt, SaveAnswer, SaveRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{
    ChangesetRef, Checkpoint, CheckpointRef, Evidence, EvidenceIndex, Job, Judgement, Producer, Role, RunStateRef,
    SavePoint, Trigger,
};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::{Changeset, Content, Entry, Manifest, Mode, node};

use crate::desk::{Desk, key, name, verdict};

/// How much of the state one record may hold.
const STATE_BYTES_MAX: usize = 16 << 10;

/// What an agent has made so far: a project of some size, of which each turn changes one file.
struct Work {
    files: Manifest,
    root: Digest,
    index: Digest,
    /// What is stored.
    known: BTreeSet<Digest>,
}

fn file(text: &str) -> Entry {
    let (digest, size) = (Digest::of(text), text.len() as u64);
    Entry::File { digest, size, mode: Mode::from_bits(0o644), content: Content::Stored }
}

/// A tree of 60 files in 6 folders after this turn, and all of its blobs.
fn tree(turn: u64) -> (Manifest, Digest, Vec<Vec<u8>>) {
    let text = |number: u64| format!("file {number} as of turn {}\n", turn - (turn + 60 - number) % 60);
    let entries = (0..60).map(|number| {
        let path = format!("src/part-{}/file-{number}.rs", number % 6).parse().unwrap();
        (path, file(&text(number)))
    });
    let manifest = Manifest::new(entries.collect()).unwrap();
    let nodes = node::nodes(&manifest);
    let texts = (0..60).map(|number| text(number).into_bytes());
    (manifest, nodes.root, nodes.blobs.into_values().chain(texts).collect())
}

/// One log of the turn, as evidence after what there was: the log and the index.
fn evidence(turn: u64, previous: Option<Digest>) -> [Vec<u8>; 2] {
    let log = format!("output of turn {turn}\n").repeat(20);
    let evidence = Evidence {
        digest: Digest::of(&log),
        size: log.len() as u64,
        media_type: "text/plain".into(),
        produced_by: Producer { role: Role::Worker, instance: name("worker") },
        step: Some("work".parse().unwrap()),
        created_at: Timestamp::now(),
        redactions: Default::default(),
        dropped_bytes: 0,
    };
    let entries = [(format!("log:work-{turn}").parse().unwrap(), evidence)].into();
    [log.into_bytes(), json::canonical(&EvidenceIndex { previous, entries }).unwrap()]
}

/// A turn: something is written, logged and saved.
async fn turn(desk: &Desk, job: &Job, number: u64, work: Option<Work>) -> Work {
    let (files, root, mut blobs) = tree(number);
    let [log, index] = evidence(number, work.as_ref().map(|work| work.index));
    let state = format!("{{\"turns\":{number}}}").into_bytes();
    let (index_digest, state_digest) = (Digest::of(&index), Digest::of(&state));
    // What the turn before has stored is there already.
    let known = work.map(|work| work.known).unwrap_or_default();
    blobs.retain(|blob| !known.contains(&Digest::of(blob)));
    let known = known.into_iter().chain(blobs.iter().map(Digest::of)).collect();
    blobs.extend([log, index, state]);
    desk.blobs.put_all(blobs).await.unwrap();
    let save_point = SavePoint {
        epoch: job.epoch,
        step: "work".parse().unwrap(),
        run_state: RunStateRef { digest: state_digest, turns: number, tokens_used: 0, tokens_total: 0 },
        base: job.base.unwrap_or(root),
        tree: root,
        evidence_index: Some(index_digest),
        began: None,
    };
    let request = SaveRequest { task_id: job.task_id.clone(), worker: name("worker"), save_point };
    assert_eq!(desk.coordinator.save_point(request).await.unwrap(), SaveAnswer::Saved);
    Work { files, root, index: index_digest, known }
}

/// Writes a checkpoint about the work, and returns what names it.
async fn checkpoint(desk: &Desk, job: &Job, work: &Work, base: &(Manifest, Digest), gate: bool) -> CheckpointRef {
    let changeset = Changeset::between(&base.0, &work.files);
    let hash = desk.blobs.put(&changeset.to_bytes()).await.unwrap();
    let mut unsealed: Checkpoint = desk.checkpoint(job).await;
    unsealed.gate = gate;
    unsealed.trigger = if gate { Trigger::ChangesetBeforeApply } else { Trigger::PlanSubgraphDone };
    (unsealed.workspace.base, unsealed.workspace.tree) = (base.1, work.root);
    unsealed.changesets.proposed = ChangesetRef { id: unsealed.changesets.proposed.id, hash };
    unsealed.evidence.index = work.index;
    let sealed = unsealed.seal().unwrap();
    assert_eq!(desk.send(&sealed).await, Receipt::Accepted);
    let record = Digest::of(json::canonical(&sealed).unwrap());
    let (id, hash, sequence) = (sealed.checkpoint_id, sealed.integrity.checkpoint_hash, sealed.sequence);
    CheckpointRef { id, hash, sequence, record }
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => bytes_below(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// Journal and blobs so far.
fn written(folder: &Path) -> u64 {
    bytes_below(&folder.join("store/journal")) + bytes_below(&folder.join("blobs"))
}

fn largest_state(folder: &Path) -> usize {
    let journal = std::fs::read_to_string(folder.join("store/journal/00000001.jsonl")).unwrap();
    let state =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["record"]["state"].to_string().len();
    journal.lines().skip(1).map(state).max().unwrap()
}

/// In memory where there is such a place: bytes are counted here, and thousands of waits for a disk say nothing.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[tokio::test]
async fn five_hundred_turns_write_twice_what_two_hundred_and_fifty_do() {
    let folder = folder();
    let desk = Desk::open(folder.path()).await;
    let task = desk
        .submit_with("rules:\n- {id: on, on: [round], when: 'round.rejections > 0', action: retry, limit: 900}\n")
        .await;
    let (mut jobs, mut reviews) = (desk.consume("jobs.local").await, desk.consume("reviews.local").await);
    let (manifest, root, blobs) = tree(60);
    desk.blobs.put_all(blobs).await.unwrap();
    let base = (manifest, root);
    let mut work: Option<Work> = None;
    let mut half = 0;
    let mut number = 60;
    while number < 560 {
        let mut job = desk.take_job(jobs.as_mut()).await;
        job.base = Some(base.1);
        for of_attempt in 1..=25 {
            number += 1;
            work = Some(turn(&desk, &job, number, work.take()).await);
            if of_attempt % 5 == 0 {
                let made = work.as_ref().unwrap();
                job.head = Some(checkpoint(&desk, &job, made, &base, of_attempt == 25).await);
            }
        }
        let request = desk.take_review(reviews.as_mut()).await;
        desk.judge(&request, &verdict(&request, Judgement::ChangesRequired), &key(1)).await;
        desk.until(&task, TaskState::Queued).await;
        if number == 310 {
            half = written(folder.path());
        }
    }
    let whole = written(folder.path());
    let state = largest_state(folder.path());
    assert!(whole * 10 <= half * 22, "{half} bytes for 250 turns, {whole} for 500");
    assert!(state <= STATE_BYTES_MAX, "{state} bytes");
    // All of it can be seen, and nothing of it is garbage but three empty records of the hands.
    let view = desk.api.task(&task).await.unwrap();
    assert_eq!((view.reviews.len(), view.decisions.len()), (20, 20));
    desk.clock.days(2);
    assert_eq!(desk.api.collect(true).await.unwrap().freed.count, 3);
    desk.close().await;
}
