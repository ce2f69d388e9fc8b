//! What to run: argv, working directory, complete environment, limits, and where the output goes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::confine::Confinement;
use super::wire::{Bytes, Request};
use crate::digest::{Digest, Hasher};

/// How long a command may run and how much it may print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// After this time the command's process group gets SIGTERM.
    pub time: Duration,
    /// After this much more, or after a cancellation, everything left gets SIGKILL.
    pub grace: Duration,
    /// How many bytes of each output file are kept: the first half and the last half.
    pub output_bytes_max: u64,
}

/// The files that receive the raw output. They are created, or emptied, with mode 0600.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Both streams in one file, in the order of the writes.
    Merged(PathBuf),
    /// A file for each stream; the order between them is lost.
    Split {
        /// Receives standard output.
        stdout: PathBuf,
        /// Receives standard error.
        stderr: PathBuf,
    },
}

/// One command, ready to run. Its `Debug` form shows no value of the environment.
#[derive(Clone)]
pub struct Command {
    argv: Vec<OsString>,
    cwd: PathBuf,
    env: BTreeMap<OsString, OsString>,
    stdin: Option<PathBuf>,
    output: Output,
    limits: Limits,
    confinement: Option<Confinement>,
}

impl Command {
    /// A command with an empty environment and no input. `argv[0]` is looked up in the `PATH` of
    /// [`Command::env`]; where it holds a `/` it is a path, relative to `cwd`.
    pub fn new<A>(argv: impl IntoIterator<Item = A>, cwd: impl Into<PathBuf>, output: Output, limits: Limits) -> Self
    where
        A: Into<OsString>,
    {
        let argv = argv.into_iter().map(Into::into).collect();
        Self { argv, cwd: cwd.into(), env: BTreeMap::new(), stdin: None, output, limits, confinement: None }
    }

    /// Sets one variable. Nothing of the caller's own environment is ever added.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets several variables.
    #[must_use]
    pub fn envs<N: Into<OsString>, V: Into<OsString>>(mut self, vars: impl IntoIterator<Item = (N, V)>) -> Self {
        self.env.extend(vars.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Lets the command read this file as its standard input instead of nothing.
    #[must_use]
    pub fn stdin(mut self, file: impl Into<PathBuf>) -> Self {
        self.stdin = Some(file.into());
        self
    }

    /// Confines the command and all that it starts.
    #[must_use]
    pub fn confined(mut self, confinement: Confinement) -> Self {
        self.confinement = Some(confinement);
        self
    }

    /// The program and its arguments.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// Names what would run: the digest of argv, working directory, environment and input file.
    ///
    /// Two commands with the same fingerprint do the same thing as far as this machine's files are the same; where the
    /// output goes and how long it may take is no part of it. A permission for one command must not pass for another.
    pub fn fingerprint(&self) -> Digest {
        let mut hasher = Hasher::new();
        let mut field = |tag: u8, bytes: &[u8]| {
            hasher.update(&[tag]);
            hasher.update(&(bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        self.argv.iter().for_each(|arg| field(b'a', arg.as_bytes()));
        field(b'd', self.cwd.as_os_str().as_bytes());
        for (name, value) in &self.env {
            field(b'n', name.as_bytes());
            field(b'v', value.as_bytes());
        }
        if let Some(stdin) = &self.stdin {
            field(b'i', stdin.as_os_str().as_bytes());
        }
        hasher.finish()
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn to_request(&self) -> Request {
        let (stdout, stderr) = match &self.output {
            Output::Merged(file) => (file, None),
            Output::Split { stdout, stderr } => (stdout, Some(Bytes::of(stderr))),
        };
        Request {
            argv: self.argv.iter().map(Bytes::of).collect(),
            cwd: Bytes::of(&self.cwd),
            env: self.env.iter().map(|(name, value)| (Bytes::of(name), Bytes::of(value))).collect(),
            time_limit_ms: millis(self.limits.time),
            grace_ms: millis(self.limits.grace),
            output_bytes_max: self.limits.output_bytes_max,
            stdin: self.stdin.as_deref().map(Path::as_os_str).map(Bytes::of),
            stdout: Bytes::of(stdout),
            stderr,
            confinement: self.confinement.clone(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(crate::json::INTEGER_MAX.unsigned_abs())
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsStr> = self.env.keys().map(OsString::as_os_str).collect();
        f.debug_struct("Command")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env_names", &names)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curl(url: &str) -> Command {
        let limits = Limits { time: Duration::from_secs(1), grace: Duration::ZERO, output_bytes_max: 1 };
        Command::new(["curl", url], "/project", Output::Merged("out".into()), limits).env("PATH", "/usr/bin")
    }

    #[test]
    fn a_permission_for_one_command_does_not_fit_another() {
        let approved = curl("https://a.example").fingerprint();
        assert_eq!(curl("https://a.example").fingerprint(), approved);

        let mut elsewhere = curl("https://a.example");
        elsewhere.cwd = "/other".into();
        for other in [
            curl("https://b.example"),
            elsewhere,
            curl("https://a.example").env("PATH", "/tmp/evil:/usr/bin"),
            curl("https://a.example").env("LD_PRELOAD", ""),
            curl("https://a.example").stdin("/etc/passwd"),
            Command { argv: vec!["curl".into(), "https://a".into(), ".example".into()], ..curl("") },
        ] {
            assert_ne!(other.fingerprint(), approved, "{other:?}");
        }
    }

    #[test]
    fn debug_output_shows_no_value_of_the_environment() {
        let text = format!("{:?}", curl("x").env("API_KEY", "hunter2hunter2"));
        assert!(text.contains("API_KEY") && !text.contains("hunter2"), "{text}");
    }
}
