//! The orchestrator's edges with the real store, blobs and bus: what workers
//! and reviewers may send, what is refused, and what a restart finds again.

mod desk;

mod forged;
mod leasing;
mod restart;
