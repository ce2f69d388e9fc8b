//! One turn of the core: a copy of the task that is being changed, and the
//! effects that follow. Entering a state sets its timers and sends its
//! messages, so that no handler can forget them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::json;
use checkrein_shared::policy::CompiledPolicy;
use checkrein_shared::records::{Checkpoint, EffectEntry, JobKind, JobMessage};
use checkrein_shared::time::Timestamp;
use serde::Serialize;

use super::decision::{Decision, Destination, Effect, IllegalTransition, Reason, Timer};
use super::effects::EFFECT_TABLE;
use super::rounds::next_deadline;
use super::task::{State, Task};

/// How long a job may wait for a lease before its message is published again.
pub(super) const DISPATCH_TIMEOUT: Duration = Duration::from_secs(600);

/// Why nobody knows what came of an effect whose attempt is over.
const UNSAID: &str = "the attempt that started it ended without saying what came of it";

/// What the core may look at besides the task: all of it named by digests in the task or the event.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The policy that the task pins.
    pub policy: &'a CompiledPolicy,
    /// The record of the newest checkpoint.
    pub head: Option<&'a Checkpoint>,
    /// The changeset of the newest checkpoint, or of the one in the event.
    pub change: &'a Change,
    /// The ledger's entries of the task's open effects, and of the one that the event is about.
    pub effects: &'a BTreeMap<Digest, EffectEntry>,
    /// Names of reviews whose relevant files did not change since their newest verdict.
    pub unaffected: &'a BTreeSet<String>,
    /// Who writes control checkpoints.
    pub orchestrator: &'a InstanceId,
    /// The number of the task's newest event.
    pub version: u64,
}

/// What rules may know about a changeset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// How many files it touches.
    pub files: u64,
    /// How many lines it adds or removes.
    pub lines: u64,
    /// The paths that it touches.
    pub paths: Vec<String>,
}

pub(super) type Handled = Result<Option<Reason>, IllegalTransition>;

/// The task as it changes, and what follows.
pub(super) struct Turn<'a> {
    pub(super) task: Task,
    pub(super) at: Timestamp,
    pub(super) context: Context<'a>,
    pub(super) head: Option<Checkpoint>,
    pub(super) event: &'static str,
    effects: Vec<Effect>,
    /// The ledger's entries that this turn changed.
    changed: BTreeMap<Digest, EffectEntry>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(task: &Task, at: Timestamp, event: &'static str, context: Context<'a>) -> Self {
        let mut task = task.clone();
        task.updated_at = at;
        Self { task, at, context, head: context.head.cloned(), event, effects: Vec::new(), changed: BTreeMap::new() }
    }

    pub(super) fn finish(mut self, handled: Handled) -> Result<Decision, IllegalTransition> {
        for (key, entry) in std::mem::take(&mut self.changed) {
            let value = serde_json::to_value(entry).expect("an entry is plain data");
            self.effect(Effect::PutRow { table: EFFECT_TABLE.to_owned(), key: key.to_hex(), value });
        }
        let ignored = handled?;
        if ignored.is_none() {
            self.retire();
        }
        Ok(match ignored {
            Some(reason) => Decision::Ignore(reason),
            None => Decision::Advance { next: Box::new(self.task), effects: self.effects },
        })
    }

    pub(super) fn illegal(&self, hint: impl Into<String>) -> Handled {
        Err(IllegalTransition { state: self.task.state.name(), event: self.event, hint: hint.into() })
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Whether a row is written by this turn already.
    pub(super) fn writes_row(&self, wanted: (&str, &str)) -> bool {
        let same =
            |effect: &Effect| matches!(effect, Effect::PutRow { table, key, .. } if (&**table, &**key) == wanted);
        self.effects.iter().any(same)
    }

    /// An entry of the effects ledger, as this turn leaves it so far.
    pub(super) fn entry(&self, key: &Digest) -> Option<&EffectEntry> {
        self.changed.get(key).or_else(|| self.context.effects.get(key))
    }

    /// Writes an entry of the effects ledger.
    pub(super) fn put(&mut self, entry: EffectEntry) {
        self.changed.insert(entry.key, entry);
    }

    /// Stores a record as a blob and returns the blob's digest.
    pub(super) fn store<T: Serialize>(&mut self, record: &T) -> Digest {
        let bytes = json::canonical(record).expect("records of the core hold no floats and no large integers");
        let digest = Digest::of(&bytes);
        self.effect(Effect::StoreBlob { digest, bytes });
        digest
    }

    /// Leaves the state that the task is in for another one.
    pub(super) fn enter(&mut self, state: State) {
        if !matches!(state, State::Running { .. } | State::Cancelling { .. }) {
            self.lose_claims(UNSAID);
        }
        self.leave();
        match &state {
            State::Queued { job } => {
                self.end_conversation(job);
                self.task.epoch += 1;
                self.publish_job();
                self.set(Timer::Dispatch { epoch: self.task.epoch }, self.at.plus(DISPATCH_TIMEOUT));
            }
            State::Running { .. } => self.start_wall_timer(),
            State::Reviewing { slots } => {
                if let Some(deadline) = next_deadline(slots) {
                    self.set(Timer::Review { round: self.task.round }, deadline);
                }
            }
            State::Waiting { item } => {
                if let Some(deadline) = item.deadline {
                    self.set(Timer::Item { item: item.id.clone(), stage: item.stage }, deadline);
                }
            }
            State::Held { .. }
            | State::Paused { .. }
            | State::Blocked { .. }
            | State::Cancelling { .. }
            | State::Done { .. } => {}
        }
        self.task.state = state;
    }

    fn leave(&mut self) {
        match &self.task.state {
            State::Queued { .. } => self.clear(Timer::Dispatch { epoch: self.task.epoch }),
            State::Running { .. } => self.clear(Timer::Wall {}),
            State::Reviewing { .. } => self.clear(Timer::Review { round: self.task.round }),
            State::Waiting { item } => {
                let timer = Timer::Item { item: item.id.clone(), stage: item.stage };
                self.clear(timer);
            }
            State::Held { .. }
            | State::Paused { .. }
            | State::Blocked { .. }
            | State::Cancelling { .. }
            | State::Done { .. } => {}
        }
    }

    /// Queues a job; where a change is half applied, that is finished first.
    pub(super) fn queue(&mut self, job: JobKind) {
        let job = self.finish_first(job);
        self.enter(State::Queued { job });
    }

    /// Queues a job whose message goes out only after `wait`.
    pub(super) fn queue_later(&mut self, job: JobKind, wait: Duration) {
        let job = self.finish_first(job);
        self.lose_claims(UNSAID);
        self.leave();
        self.end_conversation(&job);
        self.task.epoch += 1;
        self.set(Timer::Dispatch { epoch: self.task.epoch }, self.at.plus(wait));
        self.task.state = State::Queued { job };
    }

    /// Publishes the queued job's message, for the first time or again.
    pub(super) fn publish_job(&mut self) {
        let job_id = self.task.id.job(self.task.epoch);
        let message = JobMessage { job_id: job_id.clone(), task_id: self.task.id.clone(), epoch: self.task.epoch };
        let body = serde_json::to_value(message).expect("a job message is plain data");
        self.effect(Effect::Publish { id: job_id.into(), kind: "job".into(), to: Destination::Jobs, body });
    }

    pub(super) fn set(&mut self, timer: Timer, at: Timestamp) {
        self.effect(Effect::SetTimer { timer, at });
    }

    pub(super) fn clear(&mut self, timer: Timer) {
        self.effect(Effect::ClearTimer { timer });
    }

    /// Adds the time under lease so far, so that rules see it.
    pub(super) fn settle_wall(&mut self) {
        if let State::Running { since, .. } = &mut self.task.state {
            let spent = u64::try_from(self.at.since(*since).as_millis()).unwrap_or(u64::MAX);
            *since = self.at.max(*since);
            self.task.usage.wall_ms = self.task.usage.wall_ms.saturating_add(spent);
        }
    }

    fn start_wall_timer(&mut self) {
        if let Some(left) = self.wall_left() {
            self.set(Timer::Wall {}, self.at.plus(left));
        }
    }
}

impl State {
    /// The state in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Running { .. } => "running",
            Self::Reviewing { .. } => "reviewing",
            Self::Waiting { .. } => "waiting for a person",
            Self::Held { .. } => "held by a person",
            Self::Paused { .. } => "paused",
            Self::Blocked { .. } => "blocked",
            Self::Cancelling { .. } => "being cancelled",
            Self::Done { .. } => "done",
        }
    }
}
