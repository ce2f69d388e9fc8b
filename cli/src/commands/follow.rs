//! Follows a task: prints its events until it rests.

use checkrein_shared::api::{Api, Error, EventView, TaskState};
use checkrein_shared::ids::TaskId;
use serde_json::json;

use super::signals::Signals;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::event_lines;

/// How long one look waits for the next event, in milliseconds.
const WAIT_MS: u64 = 1_000;

/// Why following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing more happens without a person, or at all.
    In(TaskState),
    /// A signal came.
    Interrupted,
    /// Nobody reads the output any more.
    Unread,
}

/// Whether a task in this state goes on only when somebody does something.
pub(crate) fn rests(state: TaskState) -> bool {
    match state {
        TaskState::Waiting | TaskState::Held | TaskState::Paused | TaskState::Blocked => true,
        TaskState::Queued | TaskState::Running | TaskState::Reviewing | TaskState::Cancelling => false,
        TaskState::Completed | TaskState::Failed | TaskState::Cancelled => true,
    }
}

/// One who follows a task.
pub(crate) struct Follow<'a> {
    context: &'a Context,
    api: &'a dyn Api,
    id: TaskId,
    after: u64,
    state: TaskState,
}

impl<'a> Follow<'a> {
    /// Begins with what happens now, or with the task's first event.
    pub(crate) async fn new(
        context: &'a Context,
        api: &'a dyn Api,
        id: TaskId,
        from_start: bool,
    ) -> Result<Self, Failure> {
        let task = api.task(&id).await?;
        let after = if from_start { 0 } else { task.version };
        Ok(Self { context, api, id, after, state: task.summary.state })
    }

    /// Prints what happens until the task rests, or a signal comes.
    pub(crate) async fn until_it_rests(&mut self, signals: &Signals) -> Result<Rest, Failure> {
        self.until(signals, |_| {}).await
    }

    /// The same, and shows each event to `see` after it was printed.
    pub(crate) async fn until(
        &mut self,
        signals: &Signals,
        mut see: impl FnMut(&EventView) + Send,
    ) -> Result<Rest, Failure> {
        loop {
            let wait = if rests(self.state) { 0 } else { WAIT_MS };
            let events = tokio::select! {
                events = self.api.events(&self.id, self.after, wait) => self.or_none(events)?,
                () = signals.first() => return self.end(Rest::Interrupted),
            };
            if events.is_empty() {
                if rests(self.state) {
                    return self.end(Rest::In(self.state));
                }
                self.show_progress().await?;
            }
            for event in events {
                self.print(&event)?;
                see(&event);
                self.after = event.version;
                self.state = event.state;
            }
            if self.context.out.is_closed() && self.context.out.is_json() {
                return self.end(Rest::Unread);
            }
        }
    }

    /// A process that worked on one task ends as soon as that rests: then there is nothing more to ask.
    fn or_none(&self, events: Result<Vec<EventView>, Error>) -> Result<Vec<EventView>, Error> {
        match events {
            Err(Error::Unavailable(_)) if rests(self.state) => Ok(Vec::new()),
            events => events,
        }
    }

    fn end(&self, rest: Rest) -> Result<Rest, Failure> {
        self.context.out.progress_done();
        Ok(rest)
    }

    fn print(&self, event: &EventView) -> Result<(), Failure> {
        let out = &self.context.out;
        out.object(&json!({ "event": event }))?;
        event_lines(out, event).iter().for_each(|line| out.note(line));
        Ok(())
    }

    async fn show_progress(&self) -> Result<(), Failure> {
        if self.context.out.shows_progress() {
            let summary = self.api.task(&self.id).await?.summary;
            self.context.out.progress(&format!("{}: {}", summary.state.as_str(), summary.detail));
        }
        Ok(())
    }
}
