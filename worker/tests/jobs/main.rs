//! Real jobs on a real worker, with stores, bus and commands as they are; only the orchestrator is a small one that keeps
//! its promises. This binary is also the supervisor of its commands, so it has its own `main`.

#![expect(clippy::unwrap_used, reason = "the tests are called by a main of our own, so the linter does not see tests")]

mod applying;
mod drifting;
mod effects;
mod endings;
mod evidence;
mod pausing;
mod saving;
mod secrets;
mod steps;
mod support;
mod taking;
mod triggers;

use std::process::ExitCode;

use checkrein_shared::process::{SUPERVISE, supervise_main};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(SUPERVISE) {
        return supervise_main();
    }
    let modules = [
        ("applying", applying::tests()),
        ("drifting", drifting::tests()),
        ("effects", effects::tests()),
        ("endings", endings::tests()),
        ("evidence", evidence::tests()),
        ("pausing", pausing::tests()),
        ("saving", saving::tests()),
        ("secrets", secrets::tests()),
        ("steps", steps::tests()),
        ("taking", taking::tests()),
        ("triggers", triggers::tests()),
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
