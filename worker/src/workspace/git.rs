//! The one place that runs git, with everything off that could run code or hide changes.
//!
//! No hooks, no fsmonitor, no filters, no pager, no system or user settings, no
//! network, no lock that a killed process would leave behind. Changes are never
//! found with git; it only lists what it tracks and copies its history.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The time that one git command may take.
const TIME_MAX: Duration = Duration::from_secs(300);

/// The largest output that is read.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// Why git did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be run.
    #[error("can't run git in `{}`: install git, or use a workspace without a `.git`", .directory.display())]
    Run {
        /// Where.
        directory: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The repository belongs to somebody else.
    #[error("the repository `{}` belongs to another user, so git refuses it: run as its owner, or change the owner", .0.display())]
    Ownership(PathBuf),
    /// It failed.
    #[error("`git {command}` failed in `{}`: {message}", .directory.display())]
    Failed {
        /// Where.
        directory: PathBuf,
        /// The subcommand.
        command: String,
        /// What git wrote, shortened.
        message: String,
    },
    /// It took too long or wrote too much.
    #[error("`git {command}` in `{}` {fault}", .directory.display())]
    Unbounded {
        /// Where.
        directory: PathBuf,
        /// The subcommand.
        command: String,
        /// Which limit it met.
        fault: &'static str,
    },
}

/// Settings that override those of any repository.
const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "advice.detachedHead=false",
];

fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("LC_ALL", "C")
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_LITERAL_PATHSPECS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
}

/// Runs `git ARGUMENTS` in a directory and returns what it wrote.
///
/// # Errors
///
/// [`Error`]; a repository of another owner has its own variant.
pub(crate) async fn run<I, S>(directory: &Path, arguments: I) -> Result<Vec<u8>, Error>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    run_in(directory, command(directory), arguments).await
}

/// As [`run`], with some variables more.
///
/// # Errors
///
/// As [`run`].
pub(crate) async fn run_with<I, S>(
    directory: &Path,
    variables: &[(&str, &OsStr)],
    arguments: I,
) -> Result<Vec<u8>, Error>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = command(directory);
    command.envs(variables.iter().copied());
    run_in(directory, command, arguments).await
}

async fn run_in<I, S>(directory: &Path, mut command: Command, arguments: I) -> Result<Vec<u8>, Error>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let arguments: Vec<S> = arguments.into_iter().collect();
    let name = arguments.first().map(|a| a.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
    command.args(arguments);
    let unbounded = |fault| Error::Unbounded { directory: directory.to_owned(), command: name.clone(), fault };
    let finished = tokio::time::timeout(TIME_MAX, collect(command)).await;
    let (success, output, message) = finished
        .map_err(|_| unbounded("took longer than five minutes"))?
        .map_err(|source| Error::Run { directory: directory.to_owned(), source })?;
    if output.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(unbounded("wrote more than 256 MiB"));
    }
    if success {
        return Ok(output);
    }
    let message = String::from_utf8_lossy(&message).trim().to_owned();
    if message.contains("dubious ownership") {
        return Err(Error::Ownership(directory.to_owned()));
    }
    Err(Error::Failed { directory: directory.to_owned(), command: name, message })
}

async fn collect(mut command: Command) -> io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let mut child = command.spawn()?;
    let piped = "both streams were asked to be piped";
    let mut stdout = child.stdout.take().expect(piped).take(OUTPUT_BYTES_MAX + 1);
    let mut stderr = child.stderr.take().expect(piped);
    let (mut output, mut message) = (Vec::new(), Vec::new());
    let drain = async {
        // The rest of a long message is read and dropped, so that git is never blocked by it.
        let mut head = (&mut stderr).take(2000);
        head.read_to_end(&mut message).await?;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await
    };
    let (read, drained) = tokio::join!(stdout.read_to_end(&mut output), drain);
    read?;
    drained?;
    if output.len() as u64 > OUTPUT_BYTES_MAX {
        child.start_kill()?;
    }
    Ok((child.wait().await?.success(), output, message))
}

/// Whether a directory is the top of a repository, a worktree or a submodule.
pub(crate) fn is_top(directory: &Path) -> bool {
    directory.join(".git").symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_repository_of_another_owner_is_a_clear_error_and_never_an_empty_answer() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), ["init", "--quiet"]).await.unwrap();
        assert_eq!(run(folder.path(), ["ls-files", "-z"]).await.unwrap(), b"");
        let mut foreign = command(folder.path());
        foreign.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        let error = run_in(folder.path(), foreign, ["ls-files", "-z"]).await.unwrap_err();
        assert!(matches!(&error, Error::Ownership(path) if path == folder.path()), "{error}");
    }

    #[tokio::test]
    async fn a_failure_says_what_git_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(folder.path(), ["rev-parse", "HEAD"]).await.unwrap_err().to_string();
        assert!(error.contains("git rev-parse") && error.contains("not a git repository"), "{error}");
    }
}
