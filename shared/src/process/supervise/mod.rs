//! The supervisor: a process of its own around one command.
//!
//! Its life is a straight line: read the request, start the command, wait for one of four things (the command ends, its
//! time is up, the caller cancels, the caller dies), kill all that is left, report. It is a *child subreaper*: whatever
//! a descendant orphans becomes the supervisor's own child, so nothing can slip away by `setsid` or a double fork.

mod capture;
mod end;
mod signals;
mod start;
mod sweep;

pub(super) use sweep::SWEEP_LIMIT;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use nix::sys::prctl;
use nix::unistd::Pid;

use super::error::Refusal;
use super::finished::Finished;
use super::guard;
use super::wire::{CANCEL, REQUEST_BYTES_MAX, Report, Request};
use crate::json;

/// The first argument with which a binary must call [`supervise_main`], before it does anything else.
pub const SUPERVISE: &str = "__supervise";

/// What a supervisor waits for besides the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    CommandEnded,
    CancelAsked,
    CallerGone,
}

/// Runs one command for the process that started this one, and reports to it.
///
/// Call it from `main` where the first argument is [`SUPERVISE`], before any thread or runtime is started. It reads the
/// request from standard input, which must stay open: its end means that the caller died, and kills the command.
pub fn supervise_main() -> ExitCode {
    start::close_inherited_files();
    let Some((request, stdin)) = read_request() else {
        // The caller died before it had asked for anything, or is no caller of ours.
        return ExitCode::from(2);
    };
    let report = match supervise(&request, stdin) {
        Ok(finished) => Report::Finished(finished),
        Err(refusal) => Report::Refused(refusal),
    };
    match write_report(&report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

type Lifeline = BufReader<io::Stdin>;

fn read_request() -> Option<(Request, Lifeline)> {
    let mut stdin = BufReader::new(io::stdin());
    let mut line = Vec::new();
    stdin.by_ref().take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    let request = json::parse_as("supervisor request", &line).ok()?;
    Some((request, stdin))
}

fn write_report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

fn supervise(request: &Request, stdin: Lifeline) -> Result<Finished, Refusal> {
    prepare().map_err(|reason| Refusal::System { program: SUPERVISE.to_owned(), reason: reason.to_string() })?;
    let started_at = Instant::now();
    let started = start::start(request)?;

    let (events, inbox) = mpsc::channel();
    let main = Pid::from_raw(started.child.id().cast_signed());
    let ended = events.clone();
    thread::spawn(move || {
        sweep::reap_until_ended(main);
        ended.send(Event::CommandEnded)
    });
    thread::spawn(move || watch_caller(stdin, &events));
    Ok(end::see_to_the_end(request, started, main, started_at, &inbox))
}

/// Detaches from the caller's terminal and session, and becomes the parent of all orphans to come.
fn prepare() -> io::Result<()> {
    signals::outlive_signals();
    // Fails only for the leader of a process group, which has no terminal to lose unless a person started it by hand.
    let _ = nix::unistd::setsid();
    prctl::set_child_subreaper(true)?;
    guard::hide_own_memory()?;
    // A crashing agent must not write its memory, with the keys that it was given, into the scratch.
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
    // Without a process table nothing could be found and killed later.
    super::proc_table::processes()?;
    Ok(())
}

fn watch_caller(stdin: Lifeline, events: &mpsc::Sender<Event>) {
    for line in stdin.lines() {
        match line {
            Ok(line) if line == CANCEL => drop(events.send(Event::CancelAsked)),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    // The supervisor may have ended; then nobody listens, which is fine.
    let _ = events.send(Event::CallerGone);
}
