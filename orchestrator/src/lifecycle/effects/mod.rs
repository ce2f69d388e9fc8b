//! Effects: what a task does outside its scratch, claimed before it starts and
//! settled when it is known what came of it.
//!
//! The ledger's entries are rows; the task keeps only what is open. An effect
//! whose outcome is unknown is never started again by itself, unless the other
//! side honours its key. Nothing here runs anything.

mod claims;
mod gates;
mod ledger;
mod open;
mod settling;
mod terms;
mod unknown;

pub(crate) use claims::answer;
pub use open::{CallGate, OpenEffect, Standing};

/// The table of the store that holds the entries.
pub const EFFECT_TABLE: &str = "effect";

/// The most effects of a task that may be open at once.
const OPEN_MAX: usize = 64;
