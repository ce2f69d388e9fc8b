//! Real commands under a real supervisor. This binary is its own supervisor, so it has its own `main`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking; without the standard harness clippy can't know")]

mod confinement;
mod endings;
mod leftovers;
mod refusals;
mod support;

use std::process::ExitCode;

use checkrein_shared::process::{SUPERVISE, supervise_main};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == SUPERVISE {
        return supervise_main();
    }
    if mode == support::CALLER {
        return support::be_a_caller();
    }
    let tests = [confinement::tests(), endings::tests(), leftovers::tests(), refusals::tests()];
    let trials = tests.into_iter().flatten().map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
