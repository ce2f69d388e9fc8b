//! A folder with the output of one shell script, and questions about which processes live.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use checkrein_shared::process::{Command, Error, Finished, Limits, Output, Supervisor};
use tempfile::TempDir;

/// A test: its name and what it does.
pub(crate) type Test = (&'static str, fn());

/// Makes a [`Test`] from a function, so that no name is written twice.
macro_rules! tests {
    ($($name:ident),* $(,)?) => { vec![$((stringify!($name), $name as fn())),*] };
}
pub(crate) use tests;

pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The first argument that makes this binary run a script as a caller that can be killed: see [`be_a_caller`].
pub(crate) const CALLER: &str = "__caller";

pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) limits: Limits,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let limits =
            Limits { time: Duration::from_secs(60), grace: Duration::from_millis(200), output_bytes_max: 1 << 20 };
        Self { folder: tempfile::tempdir().unwrap(), limits }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        let output = Output::Split { stdout: self.path("stdout"), stderr: self.path("stderr") };
        Command::new(argv, self.folder.path(), output, self.limits).env("PATH", PATH)
    }

    pub(crate) fn script(&self, script: &str) -> Command {
        self.command(&["sh", "-c", script])
    }

    /// Runs a script to its end, or to its time limit.
    pub(crate) fn sh(&self, script: &str) -> Finished {
        run(&self.script(script)).unwrap()
    }

    /// The process ids that a script wrote into its working directory, one a line.
    pub(crate) fn pids(&self, name: &str) -> Vec<i32> {
        self.text(name).lines().map(|line| line.parse().unwrap()).collect()
    }
}

pub(crate) fn run(command: &Command) -> Result<Finished, Error> {
    block_on(command.run(&Supervisor::current_exe(), pending()))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(future)
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit_once(')').unwrap().1.starts_with(" Z")
}

/// Waits for something that another process does; fails after a time that no machine needs.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs `__caller FOLDER SCRIPT`: a process that a test can kill while its command runs.
pub(crate) fn be_a_caller() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let (folder, script) = (arguments.next().unwrap(), arguments.next().unwrap());
    let limits = Bench::new().limits;
    let output = Output::Merged(Path::new(&folder).join("output"));
    let command = Command::new(["sh", "-c", &script], &folder, output, limits).env("PATH", PATH);
    run(&command).map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}
