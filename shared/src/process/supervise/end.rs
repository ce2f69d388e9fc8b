//! Waits for what ends a command, ends it, and clears up after it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::capture::Capture;
use super::start::Started;
use super::sweep::SWEEP_LIMIT;
use super::{Event, signals, sweep};
use crate::process::finished::{Ending, Finished};
use crate::process::wire::Request;

/// Waiting longer than this would overflow the clock; no command runs for a year.
const WAIT_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// How long a stream may stay open after everything has been killed.
const STREAM_PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn see_to_the_end(
    request: &Request,
    started: Started,
    main: Pid,
    started_at: Instant,
    inbox: &Receiver<Event>,
) -> Finished {
    let Started { mut child, stdout, stderr, confinement } = started;
    let stdout = Capture::start(stdout, request.output_bytes_max);
    let stderr = stderr.map(|stderr| Capture::start(stderr, request.output_bytes_max));

    let (forced, has_ended) = wait(request, main, started_at, inbox);
    let duration = started_at.elapsed();
    let left = if forced.is_none() { sweep::settle(main) } else { sweep::descendants(main) };
    // The command is not reaped yet, so its group's number is still its own.
    signals::signal_command(main, Signal::SIGKILL);
    let status = if has_ended { child.wait().ok() } else { None };
    let swept = sweep::sweep(left);
    Finished {
        ending: forced.unwrap_or_else(|| ending(status)),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        stdout: stdout.finish(STREAM_PATIENCE),
        stderr: stderr.map(|stderr| stderr.finish(STREAM_PATIENCE)),
        leftovers_killed: swept.killed,
        survivors: swept.survivors,
        confinement,
    }
}

/// Waits until the command is over. Returns why it had to be ended, if it had to be, and whether it did end.
fn wait(request: &Request, main: Pid, started_at: Instant, inbox: &Receiver<Event>) -> (Option<Ending>, bool) {
    let time_limit = Duration::from_millis(request.time_limit_ms).min(WAIT_MAX);
    let (reason, grace) = match inbox.recv_timeout(time_limit.saturating_sub(started_at.elapsed())) {
        Ok(Event::CommandEnded) => return (None, true),
        Ok(Event::CancelAsked) => (Ending::Cancelled, Duration::from_millis(request.grace_ms).min(WAIT_MAX)),
        // Nobody is left to care about a tidy end.
        Ok(Event::CallerGone) | Err(RecvTimeoutError::Disconnected) => (Ending::Cancelled, Duration::ZERO),
        Err(RecvTimeoutError::Timeout) => (Ending::TimedOut, Duration::from_millis(request.grace_ms).min(WAIT_MAX)),
    };
    if !grace.is_zero() {
        signals::signal_command(main, Signal::SIGTERM);
        // A stopped process can't react to SIGTERM before it goes on.
        signals::signal_command(main, Signal::SIGCONT);
    }
    let has_ended = wait_for_end(inbox, grace) || {
        signals::signal_command(main, Signal::SIGKILL);
        wait_for_end(inbox, SWEEP_LIMIT)
    };
    (Some(reason), has_ended)
}

/// Waits for the command's end, at most `limit`; the caller's death cuts the waiting short.
fn wait_for_end(inbox: &Receiver<Event>, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::CommandEnded) => return true,
            Ok(Event::CancelAsked) => {}
            Ok(Event::CallerGone) | Err(_) => return false,
        }
    }
}

fn ending(status: Option<ExitStatus>) -> Ending {
    // Where the status is lost nothing may pass for a success.
    let status = status.unwrap_or_else(|| ExitStatus::from_raw(Signal::SIGKILL as i32));
    match status.code() {
        Some(code) => Ending::Exited(code),
        None => Ending::Signalled(status.signal().unwrap_or(Signal::SIGKILL as i32)),
    }
}
