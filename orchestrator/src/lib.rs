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
