//! The orchestrator's edges with the real store, blobs and bus: what workers
//! and reviewers may send, what is refused, and what a restart finds again.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod desk;

mod forged;
mod garbage;
mod growth;
mod leasing;
mod lost;
mod restart;
