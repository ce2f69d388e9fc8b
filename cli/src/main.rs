//! The `checkrein` binary: reads the command line, carries the command out, and
//! says how it went by its exit code.
//!
//! This crate is the composition root: the only one that knows all roles.

mod args;
mod commands;

mod context;
mod exit;
mod failure;
mod output;
mod panic_hook;

mod client;
mod embedded;

mod agents;
mod submission;

mod demo;
mod doctor;
mod init;

use std::process::ExitCode;

use checkrein_shared::process::{SUPERVISE, hide_own_memory, supervise_main};
use tracing_subscriber::EnvFilter;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{ColorWhen, Output};

fn main() -> ExitCode {
    // The supervisor of a command is this program too. It must not have started anything before.
    if std::env::args_os().nth(1).is_some_and(|first| first == SUPERVISE) {
        return supervise_main();
    }
    panic_hook::install();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, mistakes to standard error; a reader that went away is no error.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Completed.into() };
        }
    };
    run(cli).into()
}

fn run(cli: Cli) -> Exit {
    let (json, quiet) = (cli.globals.json, cli.globals.quiet);
    match start(cli) {
        Ok(exit) => exit,
        Err(failure) => {
            Output::new(json, quiet, ColorWhen::Auto).failure(&failure);
            failure.exit
        }
    }
}

fn start(cli: Cli) -> Result<Exit, Failure> {
    let context = Context::new(&cli.globals)?;
    log(context.verbose)?;
    // Agents must not read this process's memory, where keys are.
    if let Err(error) = hide_own_memory() {
        tracing::warn!(%error, "other processes of the same user can read this one's memory");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::caused("the program can't start its threads", &error))?;
    let exit = runtime.block_on(commands::carry_out(context, cli.command));
    // A question that nobody answered would hold the process up.
    runtime.shutdown_background();
    exit
}

/// Logs go to standard error; `CHECKREIN_LOG` overrules the option.
fn log(verbose: u8) -> Result<(), Failure> {
    let level = match verbose {
        0 => "error",
        1 => "info,checkrein=debug,checkrein_orchestrator=debug,checkrein_worker=debug,checkrein_reviewer=debug",
        _ => "debug",
    };
    let filter = match std::env::var("CHECKREIN_LOG") {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|error| {
            Failure::usage(format!("CHECKREIN_LOG is `{text}`: {error}")).hint("write a level such as `debug`")
        })?,
        _ => EnvFilter::new(level),
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(verbose > 1).init();
    Ok(())
}
