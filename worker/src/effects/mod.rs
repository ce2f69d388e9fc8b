//! What a step does outside its scratch: named exactly, claimed in the ledger
//! before it starts, and settled whatever happens.
//!
//! The orchestrator decides whether something may start. Nothing here runs a
//! command.

mod call;
mod ledger;

pub(crate) use call::{key_of, of_agent, of_step};
pub(crate) use ledger::{Asked, ask, settle};

/// The variable that holds the idempotency key.
pub(crate) const KEY_VARIABLE: &str = "CHECKREIN_IDEMPOTENCY_KEY";
