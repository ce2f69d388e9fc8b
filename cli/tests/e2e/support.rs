//! What the end-to-end tests share: the binary, and a project in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A project, a task file beside it, and a data folder.
pub(crate) struct World {
    root: tempfile::TempDir,
}

/// The task file of [`World::new`]; its agent is a script in the same folder.
const TASK: &str = "\
task: write the answer
objective: answer.txt must say 42.
workspace: ./project
policy: policy.yaml
agent: {command: [./agent.sh]}
";

/// A verifier that wants 42.
const POLICY: &str = "\
version: 1
extends: default
verifiers:
  answer: {run: [grep, -qx, '42', answer.txt], timeout: 30s, network: none, covers: ['**']}
";

impl World {
    /// A world whose agent is this shell script.
    pub(crate) fn new(agent: &str) -> Self {
        let world = Self { root: tempfile::tempdir().unwrap() };
        world.write("project/answer.txt", "41\n");
        world.write("task.yaml", TASK);
        world.write("policy.yaml", POLICY);
        world.script("agent.sh", agent);
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Adds to the policy.
    pub(crate) fn policy(&self, more: &str) {
        self.write("policy.yaml", &format!("{POLICY}{more}"));
    }

    pub(crate) fn script(&self, name: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(name, &format!("#!/bin/sh\nset -eu\n{body}\n"));
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The binary with this world's data folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_checkrein"));
        command.args(args).arg("--data").arg(self.path("data")).current_dir(self.path(""));
        command.env("HOME", self.path("home")).env_remove("CHECKREIN_DATA").env("CHECKREIN_USER", "ana");
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end, within a minute.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ran::wait(command.spawn().unwrap())
    }

    /// Runs it with `--json`; each line of its output is a value.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Vec<Value>) {
        let ran = self.run(&[args, &["--json"]].concat());
        let values = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (ran.code, values)
    }

    /// The newest task.
    pub(crate) fn task(&self) -> Value {
        let (code, mut values) = self.json(&["show", "last"]);
        assert_eq!(code, 0);
        values.remove(0)
    }
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn wait(mut child: Child) -> Self {
        let deadline = Instant::now() + Duration::from_secs(60);
        // The output is drained by `wait_with_output`; a run that hangs is killed by this thread.
        let id = child.id();
        let (done, watch) = std::sync::mpsc::channel::<()>();
        let watcher = std::thread::spawn(move || {
            if watch.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            }
        });
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let _ = done.send(());
        watcher.join().unwrap();
        Self::from(output)
    }

    /// Asserts the exit code, and shows everything where it is another.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the output or the error output has this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        let both = format!("{}{}", self.stdout, self.stderr);
        assert!(both.contains(text), "no `{text}` in:\n{both}");
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Waits until something holds, for at most half a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a folder is as it never was touched.
pub(crate) fn is_empty_or_absent(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

/// The files of the blobs in a data folder, in the order of their names.
pub(crate) fn blob_files(data: &Path) -> Vec<PathBuf> {
    let mut folders = vec![data.join("blobs")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap().len() == 64 {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
