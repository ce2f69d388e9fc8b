//! Starts the command: finds the program, checks what would make the system's error unclear, wires the streams.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::errno::Errno;
use nix::unistd::AccessFlags;

use super::signals;
use crate::process::error::Refusal;
use crate::process::wire::{Bytes, Request};

/// Where a program is looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that runs, and where its output comes out.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) stdout: (PipeReader, File),
    pub(super) stderr: Option<(PipeReader, File)>,
    pub(super) confinement: String,
}

/// Closes every file but the three standard streams, so that a command gets no file that its caller had inherited.
pub(super) fn close_inherited_files() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // One of them was the folder that was just read; it is closed already.
        let _ = nix::unistd::close(number);
    }
}

pub(super) fn start(request: &Request) -> Result<Started, Refusal> {
    let argv: Vec<OsString> = request.argv.iter().map(Bytes::to_os).collect();
    let env: Vec<(OsString, OsString)> =
        request.env.iter().map(|(name, value)| (name.to_os(), value.to_os())).collect();
    check_passable(&argv, &env)?;
    let cwd = request.cwd.to_path();
    check_folder(&cwd)?;
    let (name, arguments) = argv.split_first().ok_or(Refusal::Empty)?;
    let program = find(name, &cwd, env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str()))?;

    let stdin = match request.stdin.as_ref().map(Bytes::to_path) {
        Some(path) => Stdio::from(File::open(&path).map_err(|e| stream("input", &path, &e))?),
        None => Stdio::null(),
    };
    let (stdout, stdout_end) = open_output(&request.stdout.to_path())?;
    let (stderr, stderr_end) = match &request.stderr {
        Some(path) => open_output(&path.to_path()).map(|(stderr, end)| (Some(stderr), end))?,
        None => (None, stdout_end.try_clone().map_err(|e| stream("output", &request.stdout.to_path(), &e))?),
    };
    let mut command = Command::new(&program);
    command.arg0(name).args(arguments).env_clear().envs(env).current_dir(&cwd);
    command.stdin(stdin).stdout(stdout_end).stderr(stderr_end).process_group(0);
    let (child, confinement) = spawn(command, request).map_err(|failure| explain(failure, name, &program))?;
    Ok(Started { child, stdout, stderr, confinement })
}

/// Spawns from a thread of its own: signal mask and confinement belong to the thread, and pass to the command only.
///
/// Taking the command by value closes the write ends of its pipes here as soon as it runs.
fn spawn(mut command: Command, request: &Request) -> Result<(Child, String), Failure> {
    let spawning = || {
        let confinement = match &request.confinement {
            Some(confinement) => confinement.enforce_on_this_thread().map_err(Failure::Unconfined)?,
            None => "none: not asked for".to_owned(),
        };
        signals::accept_all_signals();
        let child = command.spawn().map_err(Failure::Spawn)?;
        Ok((child, confinement))
    };
    thread::scope(|scope| scope.spawn(spawning).join()).expect("nothing in the spawning thread panics")
}

enum Failure {
    Unconfined(String),
    Spawn(io::Error),
}

fn explain(failure: Failure, name: &OsStr, program: &Path) -> Refusal {
    let error = match failure {
        Failure::Unconfined(reason) => return Refusal::Unconfined { reason },
        Failure::Spawn(error) => error,
    };
    let path = program.display().to_string();
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOEXEC) => Refusal::NotExecutable {
            path,
            reason: "it is no program for this system; does a script lack its `#!` line?".to_owned(),
        },
        // The file itself was found, so this is about the interpreter that it names.
        Some(Errno::ENOENT) => {
            Refusal::NotExecutable { path, reason: "the interpreter or loader that it names does not exist".to_owned() }
        }
        Some(Errno::EACCES) => Refusal::NotExecutable { path, reason: error.to_string() },
        Some(Errno::E2BIG) => {
            Refusal::Unpassable { what: "the arguments and the environment".to_owned(), reason: error.to_string() }
        }
        _ => Refusal::System { program: name.display().to_string(), reason: error.to_string() },
    }
}

fn check_passable(argv: &[OsString], env: &[(OsString, OsString)]) -> Result<(), Refusal> {
    let holds_nul = |text: &OsStr| text.as_bytes().contains(&0);
    let refuse = |what: String, reason: &str| Err(Refusal::Unpassable { what, reason: reason.to_owned() });
    if let Some(position) = argv.iter().position(|argument| holds_nul(argument)) {
        return refuse(format!("argument {position}"), "it holds a NUL byte");
    }
    for (name, value) in env {
        if name.is_empty() || name.as_bytes().contains(&b'=') || holds_nul(name) {
            return refuse(
                format!("the variable name `{}`", name.display()),
                "it is empty, or holds `=` or a NUL byte",
            );
        }
        if holds_nul(value) {
            return refuse(format!("the value of the variable `{}`", name.display()), "it holds a NUL byte");
        }
    }
    Ok(())
}

fn check_folder(cwd: &Path) -> Result<(), Refusal> {
    let refuse = |reason: String| Refusal::WorkingDirectory { path: cwd.display().to_string(), reason };
    if !cwd.is_absolute() {
        return Err(refuse("it is not an absolute path".to_owned()));
    }
    let metadata = cwd.metadata().map_err(|e| refuse(e.to_string()))?;
    if !metadata.is_dir() {
        return Err(refuse("it is not a folder".to_owned()));
    }
    nix::unistd::access(cwd, AccessFlags::X_OK).map_err(|e| refuse(e.desc().to_owned()))
}

/// Finds the file to execute, as `execvp` would, but says where it looked.
fn find(name: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    if name.is_empty() {
        return Err(Refusal::Empty);
    }
    if name.as_bytes().contains(&b'/') {
        let file = cwd.join(name);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Err(not_found(name, format!("`{}`", cwd.display()))),
            Err(e) => Err(not_executable(&file, e)),
        };
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut unusable = None;
    for folder in path.as_bytes().split(|b| *b == b':') {
        let folder = Path::new(OsStr::from_bytes(folder));
        // An empty or relative entry means the working directory, which an agent writes: never run what lies there.
        if !folder.is_absolute() {
            continue;
        }
        let file = folder.join(name);
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(e) => unusable = unusable.or(Some(not_executable(&file, e))),
        }
    }
    Err(unusable.unwrap_or_else(|| not_found(name, format!("`PATH={}`", path.display()))))
}

fn executable(file: &Path) -> Result<(), Errno> {
    let metadata = file.metadata().map_err(|e| e.raw_os_error().map_or(Errno::ENOENT, Errno::from_raw))?;
    if metadata.is_dir() {
        return Err(Errno::EISDIR);
    }
    nix::unistd::access(file, AccessFlags::X_OK)
}

fn not_found(name: &OsStr, searched: String) -> Refusal {
    Refusal::NotFound { program: name.display().to_string(), searched }
}

fn not_executable(file: &Path, error: Errno) -> Refusal {
    Refusal::NotExecutable { path: file.display().to_string(), reason: error.desc().to_lowercase() }
}

fn open_output(path: &Path) -> Result<((PipeReader, File), io::PipeWriter), Refusal> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.map_err(|e| stream("output", path, &e))?;
    let (reader, writer) = io::pipe().map_err(|e| stream("output", path, &e))?;
    Ok(((reader, file), writer))
}

fn stream(stream: &str, path: &Path, error: &io::Error) -> Refusal {
    Refusal::Stream { stream: stream.to_owned(), path: path.display().to_string(), reason: error.to_string() }
}
