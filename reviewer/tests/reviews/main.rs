//! Whole reviews: real stores, a real bus, real verifiers, and signed verdicts. Only the orchestrator is a small one that
//! says what is current. This binary is also the supervisor of its commands, so it has its own `main`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking; without the standard harness clippy can't know")]

mod bench;
mod coordinator;
mod damage;
mod lies;
mod messages;
mod scale;
mod task;
mod verifiers;

use std::process::ExitCode;

use checkrein_shared::process::{SUPERVISE, supervise_main};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(SUPERVISE) {
        return supervise_main();
    }
    let modules = [
        ("damage", damage::tests()),
        ("lies", lies::tests()),
        ("messages", messages::tests()),
        ("scale", scale::tests()),
        ("verifiers", verifiers::tests()),
    ];
    let trials = modules.into_iter().flat_map(|(module, tests)| {
        tests.into_iter().map(move |(name, test)| {
            Trial::test(format!("{module}::{name}"), move || {
                test();
                Ok(())
            })
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
