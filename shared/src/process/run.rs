//! The caller's side: starts a supervisor, hands it the request, and waits for its report.
//!
//! The pipe to the supervisor's standard input is the command's lifeline: while it is open the command may run.
//! Dropping the future of [`Command::run`], or the death of this process, closes it and so kills the command.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{self, Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::command::Command;
use super::error::Error;
use super::finished::Finished;
use super::proc_table::processes;
use super::supervise::{SUPERVISE, SWEEP_LIMIT};
use super::wire::{CANCEL, REPORT_BYTES_MAX, REQUEST_BYTES_MAX, Report};
use crate::json;

/// How much longer than its own limits a supervisor may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a starter's programs are.
const STARTERS_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program that supervises: any binary whose `main` calls [`super::supervise_main`] when told to.
#[derive(Debug, Clone)]
pub struct Supervisor {
    program: PathBuf,
    /// What starts it: a command line that ends by becoming what is appended to it.
    starter: Vec<OsString>,
}

impl Supervisor {
    /// The running binary itself. It stays the same build even where its file is replaced meanwhile.
    pub fn current_exe() -> Self {
        Self::new("/proc/self/exe")
    }

    /// Another binary, as tests of a library need.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), starter: Vec::new() }
    }

    /// The same, started by a command line that ends by becoming what is appended to it, such as one that makes
    /// namespaces: it runs before any confinement and outside of it.
    #[must_use]
    pub fn started_by(&self, starter: &[&str]) -> Self {
        // Behind other programs `/proc/self` would name one of those.
        let program = std::fs::read_link(&self.program).unwrap_or_else(|_| self.program.clone());
        Self { program, starter: starter.iter().map(OsString::from).collect() }
    }

    fn start(&self) -> Result<(Child, ChildStdin, ChildStdout), Error> {
        let mut line = self.starter.iter().map(OsString::as_os_str).chain([self.program.as_os_str()]);
        let mut command = process::Command::new(line.next().unwrap_or(self.program.as_os_str()));
        // The environment is cleared because the command can read that of its parent.
        command.args(line).arg(SUPERVISE).env_clear().current_dir("/");
        if !self.starter.is_empty() {
            command.env("PATH", STARTERS_PATH);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let program = self.program.clone();
        let mut child = command.spawn().map_err(|source| Error::Supervisor { program, source })?;
        let stdin = child.stdin.take().expect("standard input was asked to be a pipe");
        let stdout = child.stdout.take().expect("standard output was asked to be a pipe");
        Ok((child, stdin, stdout))
    }
}

impl Command {
    /// Runs the command and returns when it, and everything that it started, is gone.
    ///
    /// When `cancel` completes, the command gets SIGTERM, and SIGKILL after its grace. Where the returned future is
    /// dropped it gets SIGKILL at once.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] where it was never started; the other variants say what is known. A command that fails is no
    /// error.
    pub async fn run(
        &self,
        supervisor: &Supervisor,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Finished, Error> {
        let request = self.encode()?;
        let (child, mut lifeline, stdout) = supervisor.start()?;
        let writer = File::from(lifeline.as_fd().try_clone_to_owned().map_err(Error::Io)?);
        let child = Arc::new(Mutex::new(child));
        let (sent, is_sent) = oneshot::channel();
        let driver = Driver { child: Arc::clone(&child), writer, stdout, sent };
        let mut driven = tokio::task::spawn_blocking(move || driver.drive(&request));

        let limits = self.limits();
        let patience = limits.grace + SWEEP_LIMIT * 2 + PATIENCE;
        let whole = limits.time.saturating_add(patience);
        let cancelled = async {
            cancel.await;
            // The word must not fall into the middle of the request; where sending failed there is nothing to cancel.
            let _ = is_sent.await;
        };
        let result = tokio::select! {
            result = &mut driven => Some(result),
            () = cancelled => {
                // An error means that the supervisor is ending anyway.
                let _ = lifeline.write_all(format!("{CANCEL}\n").as_bytes());
                tokio::time::timeout(patience, &mut driven).await.ok()
            }
            () = tokio::time::sleep(whole) => None,
        };
        let result = match result {
            Some(result) => result,
            None => {
                tracing::warn!("a supervisor is stuck and is killed");
                // An error means that it has ended in this very moment.
                let _ = lock(&child).kill();
                driven.await
            }
        };
        result.unwrap_or_else(|stopped| Err(Error::Io(io::Error::other(stopped))))
    }

    fn encode(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut line = Zeroizing::new(Vec::new());
        serde_json::to_writer(&mut *line, &self.to_request()).map_err(|e| Error::Io(e.into()))?;
        line.push(b'\n');
        let bytes = line.len() as u64;
        if bytes > REQUEST_BYTES_MAX { Err(Error::TooLarge { bytes, max: REQUEST_BYTES_MAX }) } else { Ok(line) }
    }
}

/// The blocking half of a run.
struct Driver {
    child: Arc<Mutex<Child>>,
    writer: File,
    stdout: ChildStdout,
    sent: oneshot::Sender<()>,
}

impl Driver {
    fn drive(self, request: &[u8]) -> Result<Finished, Error> {
        let Self { child, mut writer, stdout, sent } = self;
        // A supervisor that dies early fails this write; reading its report then tells more.
        let _ = writer.write_all(request);
        drop(writer);
        let _ = sent.send(());
        let mut line = Vec::new();
        let read = stdout.take(REPORT_BYTES_MAX).read_to_end(&mut line);
        let report = read.ok().and_then(|_| json::parse_as::<Report>("supervisor report", &line).ok());
        if report.is_none() {
            let supervisor = Pid::from_raw(lock(&child).id().cast_signed());
            kill_session(supervisor);
        }
        let status = lock(&child).wait().map_err(Error::Io)?;
        match report {
            None => Err(Error::NoReport { status }),
            Some(Report::Refused(refusal)) => Err(Error::Refused(refusal)),
            Some(Report::Finished(finished)) => check_output(finished),
        }
    }
}

fn check_output(finished: Finished) -> Result<Finished, Error> {
    let streams = [Some(&finished.stdout), finished.stderr.as_ref()];
    let lost = streams.into_iter().flatten().find_map(|stream| stream.write_error.clone());
    match lost {
        Some(reason) => Err(Error::OutputLost { reason }),
        None => Ok(finished),
    }
}

/// Kills what a dead supervisor's command left in its session. The supervisor has not been reaped, so no stranger's
/// session can have its number; a process that made a session of its own is out of reach.
fn kill_session(supervisor: Pid) {
    // It may be alive still: its output was no report, or it closed the stream.
    let _ = kill(supervisor, Signal::SIGKILL);
    let deadline = Instant::now() + SWEEP_LIMIT;
    while Instant::now() < deadline {
        let mut members = processes().unwrap_or_default();
        members.retain(|p| p.session == supervisor && p.pid != supervisor && !p.is_zombie);
        if members.is_empty() {
            return;
        }
        for member in members {
            // One that has ended meanwhile is what we want.
            let _ = kill(member.pid, Signal::SIGKILL);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}
