//! The lifecycle core: pure, synchronous, without clock, randomness or I/O.
//!
//! [`decide`] answers every event with the next state and what has to be done;
//! a driver stores and sends. Recovery needs no code of its own: the state in
//! the newest journal record is the state.

mod amendments;
mod attempts;
mod chain;
mod create;
mod decide;
mod decision;
mod drift;
mod effects;
mod event;
mod facts;
mod grants;
mod history;
mod holds;
mod items;
mod people;
mod rounds;
mod rules;
mod saving;
mod task;
mod turn;
mod verdicts;

#[cfg(test)]
mod tests;

pub use attempts::directive;
pub use chain::open_issues;
pub use create::{NewTask, create};
pub use decide::decide;
pub use decision::{Decision, Destination, Effect, IllegalTransition, Reason, Timer};
pub(crate) use effects::answer as claim_answer;
pub use effects::{CallGate, EFFECT_TABLE, OpenEffect, Standing};
pub use event::{Event, EventKind};
pub use history::{GRANT_TABLE, RULING_TABLE, VERDICT_TABLE};
pub use saving::{ATTEMPT_TABLE, CONDITIONS_KEY, Conditions};
pub use task::{
    About, Answer, Grant, GrantStatus, Item, OpenFinding, Outcome, PolicyPin, Ruling, Slot, SpecState, State,
    StepStatus, Subject, Task, Usage, VerdictState, Wish,
};
pub use turn::{Change, Context};
