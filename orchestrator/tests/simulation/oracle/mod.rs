//! The oracle: it sees every record as soon as it can't be lost any more, and everything that reaches the target, and
//! says when something happened that must never happen. It keeps its own books; it asks the core nothing.

mod authority;
mod chain;
mod effects;
mod findings;
mod grants;
mod history;
mod shape;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use checkrein_orchestrator::lifecycle::{EventKind, State, Task};
use checkrein_orchestrator::store::simulated::Disk;
use checkrein_orchestrator::store::{Head, Record, Recorded};
use checkrein_shared::bus::Message;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{GrantId, InstanceId, MessageId, ReviewId, RootId, TaskId};
use checkrein_shared::records::{Job, ReviewRequest, Verdict};
use serde::Deserialize as _;
use serde_json::Value;

use crate::blobs::MemoryBlobs;
use crate::policies::POLICIES;
use crate::scenario::Scenario;
use effects::Effects;
pub(crate) use effects::{Outside, Start};
use history::History;

/// What a reviewer really signed.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) verdict: Verdict,
    pub(crate) signer: InstanceId,
}

/// What the oracle knows of a task.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The newest state.
    pub(crate) task: Option<Task>,
    pub(crate) version: u64,
    /// The hashes of all checkpoints, oldest first.
    pub(crate) chain: Vec<Digest>,
    /// Genuine verdicts that the task has taken, by review.
    pub(crate) taken: BTreeMap<ReviewId, Signed>,
    pub(crate) compromised: BTreeMap<InstanceId, checkrein_shared::time::Timestamp>,
    pub(crate) effects: Effects,
    pub(crate) history: History,
    pub(crate) newest_request: Option<ReviewRequest>,
    /// The largest state so far, in bytes.
    pub(crate) state_bytes_max: usize,
}

pub(crate) struct Oracle {
    pub(crate) blobs: Arc<MemoryBlobs>,
    /// The policy of all tasks.
    policy: usize,
    /// Whether the other side recognises an effect that is made again.
    idempotent: bool,
    books: BTreeMap<TaskId, Book>,
    /// What really goes on outside, by key.
    outside: BTreeMap<Digest, Outside>,
    /// The head of the journal, as the oracle keeps it outside.
    head: Head,
    /// What reviewers signed, by envelope.
    signed: BTreeMap<Digest, Signed>,
    /// Messages that follow from records that can't be lost.
    owed: BTreeSet<MessageId>,
    /// Messages that the bus has taken.
    taken: BTreeSet<MessageId>,
    /// How many records there were.
    pub(crate) records: u64,
    pub(crate) failure: Option<String>,
}

impl Oracle {
    pub(crate) fn new(blobs: Arc<MemoryBlobs>, scenario: &Scenario) -> Self {
        Self {
            blobs,
            policy: scenario.policy,
            idempotent: scenario.handling.idempotent,
            books: BTreeMap::new(),
            outside: BTreeMap::new(),
            head: Head::default(),
            signed: BTreeMap::new(),
            owed: BTreeSet::new(),
            taken: BTreeSet::new(),
            records: 0,
            failure: None,
        }
    }

    pub(crate) fn fail(&mut self, what: String) {
        if self.failure.is_none() {
            self.failure = Some(what);
        }
    }

    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(what());
        }
    }

    pub(crate) fn policy(&self) -> &'static crate::policies::Policy {
        &POLICIES[self.policy]
    }

    pub(crate) fn task(&self, id: &TaskId) -> Option<&Task> {
        self.books.get(id)?.task.as_ref()
    }

    /// The newest state of a task, and what has left it.
    fn book(&self, id: &TaskId) -> Option<(&Task, &History)> {
        let book = self.books.get(id)?;
        Some((book.task.as_ref()?, &book.history))
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.books.values().filter_map(|book| book.task.as_ref())
    }

    pub(crate) fn root(&self, id: &TaskId) -> Option<RootId> {
        self.task(id).map(|task| task.root_id.clone())
    }

    pub(crate) fn newest_request(&self, id: &TaskId) -> Option<ReviewRequest> {
        self.books.get(id)?.newest_request.clone()
    }

    pub(crate) fn state_bytes_max(&self) -> usize {
        self.books.values().map(|book| book.state_bytes_max).max().unwrap_or(0)
    }

    // What the rest of the simulation tells.

    /// A reviewer signed something.
    pub(crate) fn signed(&mut self, envelope: Digest, verdict: &Verdict, signer: &InstanceId) {
        self.signed.insert(envelope, Signed { verdict: verdict.clone(), signer: signer.clone() });
    }

    /// A reviewer was asked for a review.
    pub(crate) fn requested(&mut self, request: &ReviewRequest) {
        self.books.entry(request.task_id.clone()).or_default().newest_request = Some(request.clone());
    }

    /// A worker was told that it has the lease: then that is durable.
    pub(crate) fn leased(&mut self, job: &Job) {
        let known = self.task(&job.task_id).map_or(0, |task| task.epoch);
        let (task, epoch) = (&job.task_id, job.epoch);
        self.check(known >= epoch, || format!("{task}: epoch {epoch} was leased, but only {known} is durable"));
    }

    /// A worker was told that its checkpoint is in the chain: then it is, for good.
    pub(crate) fn received(&mut self, task: &TaskId, hash: Digest) {
        let there = self.books.get(task).is_some_and(|book| book.chain.contains(&hash));
        self.check(there, || format!("{task}: a checkpoint has its receipt and is not in the chain"));
    }

    /// A worker was told that it may write.
    pub(crate) fn redeemed(&mut self, task: &TaskId, grant: &GrantId, changeset: Digest) {
        self.check_may_write(task, grant, changeset, "was told that it may write");
    }

    /// A worker changes the target now.
    pub(crate) fn writes(&mut self, task: &TaskId, grant: &GrantId, changeset: Digest) {
        self.check_may_write(task, grant, changeset, "writes");
    }

    /// The orchestrator published a message: what it follows from is durable.
    pub(crate) fn published(&mut self, message: &Message) {
        self.taken.insert(message.id.clone());
        let owed = self.owed.contains(&message.id);
        self.check(owed, || format!("the message {} follows from no durable record", message.id));
    }

    /// The store was opened again.
    pub(crate) fn reopened(&mut self, disk: &Disk, head: Head) {
        self.look(disk);
        let acknowledged = disk.acknowledged();
        self.check(head.count >= acknowledged, || {
            format!("{acknowledged} records were acknowledged, and only {} are there", head.count)
        });
        let known = self.head;
        self.check(known == head, || {
            format!("the journal ends with {head:?}, and the head that is kept outside is {known:?}")
        });
    }

    /// Everything is over; this is the journal's head as a verification finds it.
    pub(crate) fn ended(&mut self, head: Head) {
        let known = self.head;
        self.check(known == head, || format!("the journal ends with {head:?}, and not with {known:?}"));
    }

    /// What the store has in a table of a task, now that everything is over.
    pub(crate) fn read_back(&mut self, task: &TaskId, table: &str, read: &BTreeMap<String, Value>) {
        let known: BTreeMap<String, Value> =
            self.books.get(task).map(|book| book.history.table(table)).unwrap_or_default();
        let differs = read.iter().find(|(key, value)| known.get(*key) != Some(value));
        let lost = known.keys().find(|key| !read.contains_key(*key)).or(differs.map(|(key, _)| key)).cloned();
        self.check(lost.is_none(), || format!("{task}: the row {lost:?} of `{table}` is not what was written"));
    }

    /// Looks at what has become durable.
    pub(crate) fn look(&mut self, disk: &Disk) {
        for recorded in disk.take_fresh() {
            self.record(&recorded);
        }
    }

    fn record(&mut self, recorded: &Recorded) {
        let record = &recorded.record;
        let follows = record.sequence == self.head.count + 1 && record.previous == self.head.hash;
        self.check(follows, || format!("journal record {} does not follow the one before it", record.sequence));
        self.head = Head { count: record.sequence, hash: Some(recorded.hash) };
        self.records += 1;
        self.owed.extend(record.messages.iter().map(|message| message.id.clone()));
        if record.kind == "store.delivered" {
            let noted = record.event["messages"].as_array().cloned().unwrap_or_default();
            let lost =
                noted.iter().filter_map(|id| id.as_str()).find(|id| !self.taken.iter().any(|t| t.as_str() == *id));
            let lost = lost.map(ToOwned::to_owned);
            self.check(lost.is_none(), || format!("{lost:?} counts as delivered, and the bus never took it"));
        }
        if let Some(task) = &record.task {
            self.event(task, record);
        }
    }

    fn event(&mut self, id: &TaskId, record: &Record) {
        let Ok(next) = Task::deserialize(&record.state) else {
            return self.fail(format!("{id}: a state can't be read"));
        };
        let mut book = self.books.remove(id).unwrap_or_default();
        let expected = book.version + 1;
        self.check(record.version == expected, || {
            format!("{id}: event {} follows event {}", record.version, expected - 1)
        });
        book.version = record.version;
        if let Err(what) = book.history.follow(record) {
            self.fail(format!("{id} event {}: {what}", record.version));
        }
        if let Some(before) = book.task.take() {
            match EventKind::deserialize(&record.event) {
                Ok(event) => self.turn(&mut book, &before, &event, &next, record),
                Err(error) => self.fail(format!("{id}: an event can't be read: {error}")),
            }
        }
        book.task = Some(next);
        self.books.insert(id.clone(), book);
    }

    /// One event: what was, what happened, what is.
    fn turn(&mut self, book: &mut Book, before: &Task, event: &EventKind, next: &Task, record: &Record) {
        self.take_verdict(book, event);
        if let EventKind::KeyCompromised { reviewer, since } = event {
            let earlier = book.compromised.get(reviewer).copied();
            book.compromised.insert(reviewer.clone(), earlier.map_or(*since, |earlier| earlier.min(*since)));
        }
        let version = book.version;
        let at = || format!("{} event {version} ({})", next.id, event.name());
        let mut wrong = Vec::new();
        wrong.extend(shape::check(before, event, next));
        let added = match chain::added(&self.blobs, before, event, next) {
            Ok(added) => added,
            Err(what) => {
                wrong.push(what);
                Vec::new()
            }
        };
        wrong.extend(chain::check(&self.blobs, (&book.chain, &added), before, event, next));
        wrong.extend(history::check(&book.history, before, next));
        wrong.extend(grants::check(&book.history, before, event, next));
        wrong.extend(verdicts::check(book, before, event, next));
        wrong.extend(findings::check(book, before, event, next));
        wrong.extend(authority::check(self.policy(), book, before, event, next));
        if let Some(accepted) = next.accepted.as_ref() {
            book.effects.accepted.insert(accepted.hash);
        }
        wrong.extend(self.ledger(book, before, event, record));
        wrong.extend(effects::check_end(&book.effects, next));
        let first = wrong.first().map(|what| format!("{}: {what}", at()));
        if let Some(what) = first {
            self.fail(what);
        }
        book.chain.extend(added.iter().map(|checkpoint| checkpoint.integrity.checkpoint_hash));
        // States grow slowly: each eighth is enough.
        if book.version.is_multiple_of(8) {
            let bytes = serde_json::to_vec(next).map_or(0, |bytes| bytes.len());
            book.state_bytes_max = book.state_bytes_max.max(bytes);
            let too_large = bytes > shape::STATE_BYTES_MAX;
            self.check(!too_large, || format!("{}: the state has {bytes} bytes", next.id));
        }
    }

    /// Remembers which genuine verdict a task took.
    fn take_verdict(&mut self, book: &mut Book, event: &EventKind) {
        let EventKind::VerdictPublished { verdict, envelope } = event else { return };
        match self.signed.get(envelope) {
            Some(signed) if signed.verdict == **verdict && signed.signer == verdict.reviewer.identity => {
                book.taken.entry(verdict.review_id.clone()).or_insert_with(|| signed.clone());
            }
            _ => self.fail(format!("a verdict for {} was taken that no reviewer signed so", verdict.review_id)),
        }
    }
}

/// Whether a task can do nothing more without a person.
pub(crate) fn rests(task: &Task) -> bool {
    match &task.state {
        State::Waiting { .. }
        | State::Held { .. }
        | State::Paused { .. }
        | State::Blocked { .. }
        | State::Done { .. } => true,
        State::Reviewing { .. } => !task.items().is_empty(),
        State::Queued { .. } | State::Running { .. } | State::Cancelling { .. } => false,
    }
}
