//! What a confined command can and can't reach. Each test says so where the kernel has no Landlock to test.

use std::fs;

use checkrein_shared::process::{Command, Confinement, Ending, Error, Refusal, hide_own_memory};

use crate::support::{Bench, CALLER, Test, block_on, run, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_confined_command_writes_only_where_it_may,
        hidden_paths_are_unreadable_but_a_scratch_inside_them_is_not,
        a_confined_command_can_read_no_environment_but_its_own,
        a_confined_command_can_not_kill_its_supervisor,
        ordinary_work_is_possible_in_confinement,
        a_writable_path_that_is_missing_is_refused,
        what_is_required_and_absent_is_refused,
        hidden_memory_is_hidden_from_the_same_user,
    ]
}

/// A data directory with keys, a target beside it, and a scratch inside the data directory.
fn house() -> Bench {
    let bench = Bench::new();
    for folder in ["data/scratch", "data/keys", "target", "tmp"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
    }
    fs::write(bench.path("data/keys/key"), "private").unwrap();
    fs::write(bench.path("target/file"), "original").unwrap();
    std::os::unix::fs::symlink(bench.path("target"), bench.path("data/scratch/link")).unwrap();
    bench
}

fn confined(bench: &Bench, script: &str) -> Command {
    let write = ["data/scratch", "tmp"].map(|path| bench.path(path));
    let hidden = ["data", "target"].map(|path| bench.path(path));
    let script = format!("cd data/scratch && {{ {script}\n}}");
    bench.script(&script).confined(Confinement::new(write, hidden, false))
}

/// Runs a confined script; `None` where this kernel can't confine.
fn try_confined(bench: &Bench, script: &str) -> Option<Ending> {
    let finished = run(&confined(bench, script)).unwrap();
    if finished.confinement.starts_with("landlock-v") {
        return Some(finished.ending);
    }
    assert!(finished.confinement.starts_with("none: "), "{finished:?}");
    None
}

fn a_confined_command_writes_only_where_it_may() {
    let bench = house();
    let script = "echo new > file && mkdir -p deep/er && echo new > ../../tmp/file && echo x > /dev/null || exit 9
        echo evil > ../../target/file; echo evil > link/file; rm ../../target/file; mv ../../target ../../gone
        echo evil > ../keys/new; echo evil > ../../new; ln ../../target/file hard; truncate -s 0 ../../target/file
        chmod 600 file; exit 5";
    let Some(ending) = try_confined(&bench, script) else { return };
    assert_eq!(ending, Ending::Exited(5));
    assert_eq!((bench.text("data/scratch/file").as_str(), bench.text("tmp/file").as_str()), ("new\n", "new\n"));
    assert_eq!(bench.text("target/file"), "original");
    assert!(["data/keys/new", "new", "gone", "data/scratch/hard"].iter().all(|path| !bench.path(path).exists()));
}

fn hidden_paths_are_unreadable_but_a_scratch_inside_them_is_not() {
    let bench = house();
    fs::write(bench.path("data/scratch/mine"), "mine").unwrap();
    let script = "cat mine || exit 9; cat ../keys/key; cat ../../target/file; cat link/file; ls ../keys; ls ../../target; exit 5";
    let Some(ending) = try_confined(&bench, script) else { return };
    assert_eq!(ending, Ending::Exited(5));
    assert_eq!(bench.text("stdout"), "mine", "{}", bench.text("stderr"));
}

fn a_confined_command_can_read_no_environment_but_its_own() {
    let bench = house();
    let caller = std::process::id();
    let script = format!("cat /proc/self/environ > own; cat /proc/{caller}/environ /proc/$PPID/environ; exit 5");
    let Some(ending) = try_confined(&bench, &script) else { return };
    assert_eq!(ending, Ending::Exited(5));
    assert!(bench.text("data/scratch/own").contains("PATH="));
    assert_eq!(bench.text("stdout"), "");
}

fn a_confined_command_can_not_kill_its_supervisor() {
    let bench = house();
    // Signals are scoped from version 6 on; before, killing the supervisor is an error, never a success.
    let outcome = run(&confined(&bench, "kill -9 $PPID; sleep 0.1; exit 5"));
    match outcome {
        Ok(finished) => assert_eq!(finished.ending, Ending::Exited(5)),
        Err(error) => assert!(matches!(error, Error::NoReport { .. }), "{error:?}"),
    }
}

fn ordinary_work_is_possible_in_confinement() {
    let bench = house();
    let script = "git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m one &&
        (echo piped | cat > piped) && cat piped && kill -0 $$ && test -r /etc/passwd && ls /usr/bin > /dev/null";
    let command = confined(&bench, script).env("HOME", bench.path("tmp")).env("TMPDIR", bench.path("tmp"));
    let finished = run(&command).unwrap();
    assert_eq!(finished.ending, Ending::Exited(0), "{}", bench.text("stderr"));
    assert_eq!(bench.text("stdout"), "piped\n");
}

fn a_writable_path_that_is_missing_is_refused() {
    let bench = house();
    let command = bench.script("true").confined(Confinement::new([bench.path("gone")], [], false));
    assert!(matches!(run(&command), Err(Error::Refused(Refusal::Unconfined { .. }))));
}

fn what_is_required_and_absent_is_refused() {
    let bench = house();
    let can_confine = try_confined(&bench, "true").is_some();
    let outcome = run(&bench.script("true").confined(Confinement::new([bench.path("tmp")], [], true)));
    match outcome {
        Ok(finished) => assert!(can_confine && finished.confinement.starts_with("landlock-v")),
        Err(error) => assert!(!can_confine && matches!(error, Error::Refused(Refusal::Unconfined { .. })), "{error}"),
    }
}

fn hidden_memory_is_hidden_from_the_same_user() {
    hide_own_memory().unwrap();
    // Root reads everything; others find the files owned by root.
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self/environ").unwrap());
    assert_eq!(owner, 0);
    // A process that hides itself still works as a caller.
    let bench = Bench::new();
    let finished = block_on(
        bench.script("true").run(&checkrein_shared::process::Supervisor::current_exe(), std::future::pending()),
    );
    assert!(finished.unwrap().ending.is_success(), "{CALLER}");
}
