//! The orchestrator: decides what happens to tasks, and keeps the truth.
//!
//! The lifecycle core is pure; the engine stores what it decides; edges turn
//! messages, requests and timers into events. It runs no agent and judges no
//! change.

mod guards;

pub mod http;
pub mod lifecycle;
pub mod store;

mod engine;
mod gc;
mod inherit;
mod inputs;
mod ledger;
mod listing;
mod saves;
pub mod upkeep;

mod background;
mod claims;
mod clock;
mod coordinator;
mod dead;
mod inbound;
mod leases;

mod describe;
mod local_api;
mod views;

mod orchestrator;

pub use clock::{Clock, SystemClock};
#[cfg(feature = "mutations")]
pub use guards::{Guard, switch_off};

pub use engine::{Engine, Error as EngineError, Handled, Routes};
pub use gc::{Collector, Error as CollectError};
pub use orchestrator::{Config, Orchestrator, StartError, Taken};

/// An error and its causes in one line.
pub(crate) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        // Transparent wrappers say the same as what they wrap.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}
