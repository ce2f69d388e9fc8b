//! Checking a whole data folder without changing anything in it: the journal, the
//! blobs that its records name, the chains of checkpoints, and the index.
//!
//! It goes on after a problem wherever what follows can be checked on its own.

use std::path::Path;

use checkrein_shared::blob::{self, Damage};
use checkrein_shared::causes::with_causes;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, CheckpointRef};
use serde::Serialize;

use super::named::{Named, OfTask};
use super::{DataFolder, WITHOUT_HEAD_FILE, advice};
use crate::store::{self, IndexCheck};

/// The largest checkpoint record that is read.
const CHECKPOINT_BYTES_MAX: u64 = 64 << 20;

/// How many problems are listed; all are counted.
const LISTED_MAX: usize = 100;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What.
    pub what: String,
    /// Where.
    pub at: Option<String>,
    /// What to do about it.
    #[serde(rename = "try")]
    pub hint: String,
}

/// What [`audit`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// How many records the journal has.
    pub records: u64,
    /// The hash of the newest one: keep it elsewhere to notice a history that was rewritten as a whole.
    pub head: Option<String>,
    /// How many segments hold them.
    pub segments: u32,
    /// How many older records were pruned.
    pub pruned: u64,
    /// How many tasks have records.
    pub tasks: u64,
    /// How many checkpoints are in their chains.
    pub checkpoints: u64,
    /// How many blobs the records name, also by way of other blobs.
    pub blobs: u64,
    /// What is to be said about the head file; `None` where it is as it should be.
    pub head_file: Option<String>,
    /// What was found out about the index.
    pub index: Option<String>,
    /// How many problems there are.
    pub count: u64,
    /// The first of them.
    pub problems: Vec<Problem>,
}

impl Audit {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, what: String, at: Option<String>, hint: &str) {
        self.count += 1;
        if self.problems.len() < LISTED_MAX {
            self.problems.push(Problem { what, at, hint: hint.to_owned() });
        }
    }
}

const RESTORE: &str = "restore the blob from a backup: copy it to the same place below `blobs`";

/// Checks everything. Changes nothing, and works while another process has the folder open.
pub fn audit(data: &DataFolder) -> Audit {
    let mut found = Audit::default();
    let mut named = Named::default();
    let mut heads = std::collections::HashMap::new();
    // Before the journal, which only grows: so the index can't be ahead because time has passed.
    let index = store::check_index(&data.store());
    let report = store::verify_each(&data.store(), |recorded| {
        named.add(recorded);
        if Some(recorded.record.sequence) == index.count() {
            heads.insert(recorded.record.sequence, recorded.hash);
        }
    });
    match report {
        Ok(report) => {
            found.records = report.head.count;
            found.head = report.head.hash.map(String::from);
            (found.segments, found.pruned, found.tasks) = (report.segments, report.pruned, report.tasks);
            named.keep(&report.newest);
            check_index(&index, report.head.count, &heads, &mut found);
            if report.head_file.is_none() && report.head.count > 0 {
                check_head_file(&data.store().join("journal/HEAD"), &index, &mut found);
            }
        }
        Err(error) => found.add(with_causes(&error), None, advice(&error)),
    }
    for why in std::mem::take(&mut named.unreadable) {
        found.add(why, None, "use the version of Checkrein that wrote it, or restore a backup");
    }
    for (task, of_task) in named.tasks() {
        check_chain(&data.blobs(), task.as_str(), of_task, &mut found);
    }
    let mut missing = Vec::new();
    found.blobs = named.blobs(&data.blobs(), &mut |digest, why| missing.push((digest, why))).len() as u64;
    for (digest, why) in missing {
        found.add(format!("blob {digest}: {why}"), None, RESTORE);
    }
    check_contents(&data.blobs(), &mut found);
    found
}

/// The head file is missing: is there somebody else who remembers how long the journal was?
fn check_head_file(file: &Path, index: &IndexCheck, found: &mut Audit) {
    if !matches!(index, IndexCheck::Missing | IndexCheck::Broken(_) | IndexCheck::Unread(_)) {
        found.head_file = Some("missing; the next start writes it anew".to_owned());
        return;
    }
    let what = "the head file is missing, and the index can't be asked either: \
        whether the end of the journal is gone can't be told";
    found.add(what.to_owned(), Some(file.display().to_string()), WITHOUT_HEAD_FILE);
    found.head_file = Some("missing".to_owned());
}

fn check_index(
    index: &IndexCheck,
    records: u64,
    heads: &std::collections::HashMap<u64, checkrein_shared::digest::Digest>,
    found: &mut Audit,
) {
    let rebuild = "the next start rebuilds it from the journal; nothing is lost";
    let text = match index {
        IndexCheck::Missing => format!("missing; {rebuild}"),
        IndexCheck::InUse => "not checked: another process has it open".to_owned(),
        IndexCheck::Unread(why) => format!("not checked: {why}"),
        IndexCheck::Broken(why) => format!("broken ({why}); {rebuild}"),
        IndexCheck::Sound(head) if head.count > records => {
            let what = format!("the index knows of {} records, the journal has only {records}", head.count);
            found.add(what, None, "restore a backup; `checkrein store rebuild` says what would be lost by going on");
            format!("ahead of the journal by {}", head.count - records)
        }
        IndexCheck::Sound(head) if head.count > 0 && heads.get(&head.count).copied() != head.hash => {
            let what = format!("record {} is another one than the index knows", head.count);
            found.add(what, None, "the journal was changed: restore a backup");
            "of another history".to_owned()
        }
        IndexCheck::Sound(head) if head.count == records => "sound".to_owned(),
        IndexCheck::Sound(head) => format!("sound, {} records behind; the next start catches up", records - head.count),
    };
    found.index = Some(text);
}

/// Every checkpoint has the hash that it says and follows the one before; the newest is the task's head.
fn check_chain(blobs: &Path, task: &str, of_task: &OfTask, found: &mut Audit) {
    let keep = "keep the folder as it is, because it shows what was changed, and restore a backup";
    let mut previous: Option<&CheckpointRef> = None;
    for reference in &of_task.chain {
        // Its blob is among those that must be there; a missing one is told there.
        let Ok(bytes) = blob::read_from(blobs, reference.record, CHECKPOINT_BYTES_MAX) else { return };
        let checked = json::parse_as::<Checkpoint>("checkpoint", &bytes)
            .map_err(|error| with_causes(&error))
            .and_then(|checkpoint| check_checkpoint(&checkpoint, reference, previous));
        if let Err(why) = checked {
            return found.add(why, Some(format!("checkpoint {} of task {task}", reference.id)), keep);
        }
        found.checkpoints += 1;
        previous = Some(reference);
    }
    if of_task.head.as_ref().map(|head| head.hash) != previous.map(|last| last.hash) {
        let what = "the chain of checkpoints does not end at the head that the task names".to_owned();
        found.add(what, Some(format!("task {task}")), keep);
    }
}

fn check_checkpoint(
    checkpoint: &Checkpoint,
    reference: &CheckpointRef,
    previous: Option<&CheckpointRef>,
) -> Result<(), String> {
    checkpoint.check_hash().map_err(|error| error.to_string())?;
    if checkpoint.integrity.checkpoint_hash != reference.hash {
        return Err("it is another record than the chain names".to_owned());
    }
    checkpoint.check_follows(previous).map_err(|error| error.to_string())
}

/// Reads every blob that is there and compares it with its name.
fn check_contents(blobs: &Path, found: &mut Audit) {
    if !blobs.exists() {
        return;
    }
    let report = match blob::verify_folder(blobs) {
        Ok(report) => report,
        Err(error) => return found.add(with_causes(&error), None, "see whether the disk is sound"),
    };
    let listed = report.listed.len() as u64;
    for (path, damage) in report.listed {
        let (what, hint) = match damage {
            Damage::Content { found, .. } => (format!("a blob is damaged: its bytes have the digest {found}"), RESTORE),
            Damage::Unreadable(why) => (format!("a blob can't be read: {why}"), RESTORE),
            Damage::Stray => ("this does not belong among the blobs".to_owned(), "move it away"),
        };
        found.add(what, Some(path.display().to_string()), hint);
    }
    found.count += report.problems - listed;
}
