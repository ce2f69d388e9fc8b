//! The driver of the core: loads a task, has the core decide, stores what
//! follows, and only then lets anybody know.
//!
//! The order is the guarantee: blobs first, then one journal record with
//! everything that follows from the event, then messages. Nothing here decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::bus::{Pool, Queue};
use checkrein_shared::ids::{InstanceId, MessageId, TaskId};
use checkrein_shared::policy::CompiledPolicy;
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Clock;
use crate::guards::guard;
use crate::inputs::{self, Loader};
use crate::lifecycle::{
    Decision, Destination, Effect, Event, EventKind, IllegalTransition, NewTask, Reason, Task, Timer, create, decide,
};
use crate::store::{self, Commit, CommitError, OutgoingMessage, RowChange, Store, TimerChange, TimerId};

/// How often a commit is tried again because somebody else was first.
const CONFLICTS_MAX: u32 = 64;

/// Why an event could not be handled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such task.
    #[error("there is no task `{0}`")]
    NoTask(TaskId),
    /// The event does not fit the state.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// Something that the decision needs can't be read.
    #[error("the decision can't be made")]
    Inputs(#[from] inputs::Error),
    /// A blob could not be stored.
    #[error("what follows from the event could not be stored")]
    Blob(#[from] blob::Error),
    /// The journal did not take the record.
    #[error("the event could not be stored")]
    Commit(#[from] CommitError),
    /// The store can't be read.
    #[error("the store can't be read")]
    Store(#[from] store::Error),
    /// A stored task is not what this build writes.
    #[error("the stored state of `{task}` can't be read: {why}")]
    State {
        /// The task.
        task: TaskId,
        /// What is wrong.
        why: String,
    },
    /// Others kept changing the task.
    #[error("the task `{0}` kept changing; try again")]
    Busy(TaskId),
}

/// What the journal keeps of a decision besides the state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    /// The rules that had a say, in order.
    rules: Vec<String>,
}

/// What came of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// The task changed; this is it now, and the number of the event.
    Advanced(Box<Task>, u64),
    /// Nothing changed.
    Ignored(Reason, Box<Task>),
}

impl Handled {
    /// The task afterwards.
    pub fn task(&self) -> &Task {
        match self {
            Self::Advanced(task, _) | Self::Ignored(_, task) => task,
        }
    }
}

/// Where messages go.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The workers' pool.
    pub jobs: Pool,
    /// The reviewers' pool.
    pub reviews: Pool,
}

/// The driver.
pub struct Engine {
    store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    loader: Loader,
    instance: InstanceId,
    routes: Routes,
    clock: Arc<dyn Clock>,
}

impl Engine {
    /// Puts the parts together.
    pub fn new(
        store: Arc<dyn Store>,
        blobs: Arc<dyn Blobs>,
        instance: InstanceId,
        routes: Routes,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let loader = Loader::new(blobs.clone());
        Self { store, blobs, loader, instance, routes, clock }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Remembers a policy that was compiled already, so that it is not compiled once more.
    pub fn know_policy(&self, policy: Arc<CompiledPolicy>) {
        self.loader.know_policy(policy);
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(crate) fn blobs(&self) -> &dyn Blobs {
        self.blobs.as_ref()
    }

    pub(crate) fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Loads a task and the number of its newest event.
    ///
    /// # Errors
    ///
    /// [`Error::NoTask`], or what the store says.
    pub async fn task(&self, id: &TaskId) -> Result<(Task, u64), Error> {
        let stored = self.store.load(id).await?.ok_or_else(|| Error::NoTask(id.clone()))?;
        Ok((read_state(id, stored.state)?, stored.version))
    }

    /// Creates a task.
    ///
    /// # Errors
    ///
    /// See [`Error`]; nothing is half-created.
    pub async fn create(&self, new: NewTask) -> Result<Task, Error> {
        let (id, at) = (new.id.clone(), new.at);
        let policy = self.loader.policy(new.policy.digest).await?;
        let empty = crate::lifecycle::Change::default();
        let unaffected = std::collections::BTreeSet::new();
        let no_effects = BTreeMap::new();
        let context = crate::lifecycle::Context {
            policy: &policy,
            head: None,
            change: &empty,
            effects: &no_effects,
            unaffected: &unaffected,
            orchestrator: &self.instance,
            version: 0,
        };
        let Decision::Advance { next, effects } = create(new, &context)? else {
            unreachable!("creating a task always advances it")
        };
        self.carry_out(&id, 0, at, "submitted", Value::Null, &next, effects, None).await?;
        Ok(*next)
    }

    /// Has the core decide about an event and stores what follows. When this returns, it survives a power cut.
    ///
    /// # Errors
    ///
    /// See [`Error`]. After anything but [`Error::Illegal`] and [`Error::NoTask`] the event may be tried again.
    pub async fn handle(&self, id: &TaskId, kind: EventKind, cause: Option<MessageId>) -> Result<Handled, Error> {
        for _ in 0..CONFLICTS_MAX {
            let (task, version) = self.task(id).await?;
            let mut inputs = self.loader.inputs(&task, &kind).await?;
            inputs.effects = crate::ledger::for_decision(self.store(), &task, &kind).await?;
            let event = Event { at: self.clock.now().max(task.updated_at), kind: kind.clone() };
            // Synchronous, and bounded by the limits on expressions.
            let decision = decide(&task, &event, &inputs.context(&self.instance, version))?;
            let (next, effects) = match decision {
                Decision::Ignore(reason) => return Ok(Handled::Ignored(reason, Box::new(task))),
                Decision::Advance { next, effects } => (next, effects),
            };
            let name = event.kind.name();
            let value = serde_json::to_value(&event.kind).expect("events are plain data");
            match self.carry_out(id, version, event.at, name, value, &next, effects, cause.clone()).await {
                Ok(version) => return Ok(Handled::Advanced(next, version)),
                Err(Error::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Busy(id.clone()))
    }

    #[expect(clippy::too_many_arguments, reason = "one journal record is made of exactly these")]
    async fn carry_out(
        &self,
        id: &TaskId,
        version: u64,
        at: Timestamp,
        kind: &str,
        event: Value,
        next: &Task,
        effects: Vec<Effect>,
        cause: Option<MessageId>,
    ) -> Result<u64, Error> {
        let rules = next.rulings.iter().filter(|r| r.version == version + 1).map(|r| r.rule.clone()).collect();
        let mut commit = Commit {
            at,
            kind: kind.to_owned(),
            cause,
            event,
            decision: serde_json::to_value(Decided { rules }).expect("names are plain data"),
            state: serde_json::to_value(next).expect("tasks are plain data"),
            messages: Vec::new(),
            timers: Vec::new(),
            rows: Vec::new(),
        };
        let mut blobs = Vec::new();
        // A timer that is cleared and set again in one turn is only set: the last word counts.
        let mut timers: BTreeMap<&'static str, TimerChange> = BTreeMap::new();
        for effect in effects {
            match effect {
                Effect::StoreBlob { bytes, .. } => blobs.push(bytes),
                Effect::Publish { id, kind, to, body } => {
                    commit.messages.push(self.outgoing(&id, kind, &to, body, next.epoch));
                }
                Effect::SetTimer { timer, at } => {
                    let kind = serde_json::to_value(&timer).expect("timers are plain data");
                    timers.insert(timer.name(), TimerChange::Set { id: timer_id(&timer), at, kind });
                }
                Effect::ClearTimer { timer } => {
                    timers.insert(timer.name(), TimerChange::Clear { id: timer_id(&timer) });
                }
                Effect::PutRow { table, key, value } => commit.rows.push(RowChange::Put { table, key, value }),
            }
        }
        commit.timers = timers.into_values().collect();
        if !guard!(BlobsBeforeCommit, blobs.is_empty()) {
            self.blobs.put_all(blobs).await?;
        }
        Ok(self.store.commit(id, version, commit).await?.version)
    }

    fn outgoing(&self, id: &str, kind: String, to: &Destination, body: Value, epoch: u64) -> OutgoingMessage {
        let queue = match to {
            Destination::Jobs => Queue::Jobs(self.routes.jobs.clone()),
            Destination::Reviews => Queue::Reviews(self.routes.reviews.clone()),
        };
        let id = id.parse().expect("messages are named after jobs and reviews, whose names are ids");
        OutgoingMessage { id, queue, kind, epoch, body }
    }
}

fn timer_id(timer: &Timer) -> TimerId {
    timer.name().parse().expect("the names of timers are short words")
}

/// Reads a task from the store's opaque value.
pub(crate) fn read_state(id: &TaskId, state: Value) -> Result<Task, Error> {
    Task::deserialize(state).map_err(|e| Error::State { task: id.clone(), why: e.to_string() })
}
