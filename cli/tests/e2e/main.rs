//! The program as people use it: the real binary, real files, real processes.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

mod support;

mod bad_input;
mod help;
mod reference;

mod demo;
mod effects;
mod garbage;
mod instances;
mod kills;
mod outside;
mod run;
mod saving;
mod store;
mod walkthroughs;
