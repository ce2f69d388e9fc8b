//! `store` as people use it: on sound data, beside a running instance, on damage and after a loss.

#![expect(clippy::print_stderr, reason = "who runs the tests is told what was not run")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ran, World, blob_files, until};

/// Runs the binary on another data folder than the world's.
fn on(data: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_checkrein"));
    command.args(args).arg("--data").arg(data).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("CHECKREIN_DATA");
    Ran::wait(command.spawn().unwrap())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &target),
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), target).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_finished_run_is_verified_counted_and_backed_up_and_the_backup_is_a_data_folder() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["store", "verify"]).ends_with(1).says("there is no journal");
    world.run(&["run", "task.yaml"]).ends_with(0);
    world.run(&["store", "verify"]).ends_with(0).says("everything is as it was written").says("index        sound");
    let (code, values) = world.json(&["store", "verify"]);
    assert_eq!((code, &values[0]["count"], &values[0]["tasks"]), (0, &0.into(), &1.into()));
    let records = values[0]["records"].as_u64().unwrap();
    assert!(records > 3 && values[0]["checkpoints"].as_u64().unwrap() >= 1, "{values:?}");
    let (_, stats) = world.json(&["store", "stats"]);
    assert_eq!(stats[0]["records"].as_u64(), Some(records));
    assert!(stats[0]["blobs"]["count"].as_u64() >= values[0]["blobs"].as_u64());
    world.run(&["store", "stats"]).ends_with(0).says("segments").says("blobs");

    let backup = world.path("backup");
    world.run(&["store", "backup", "backup"]).ends_with(0).says("checked").says("keys");
    world.run(&["store", "backup", "backup"]).ends_with(2).says("is not empty");
    world.run(&["store", "backup", "data/inside"]).ends_with(2).says("inside the data folder");
    on(&backup, &["store", "verify"]).ends_with(0);
    // Lost, and put back.
    std::fs::remove_dir_all(world.path("data")).unwrap();
    copy(&backup, &world.path("data"));
    world.run(&["show", "last"]).ends_with(0).says("completed");
    world.run(&["checkpoint", "verify", "last"]).ends_with(0);
    world.run(&["store", "verify"]).ends_with(0);
    world.run(&["run", "task.yaml", "--new"]).ends_with(0);
}

#[test]
fn beside_a_running_instance_everything_but_the_index_is_checked_and_copied() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let mut up = world.command(&["up"]).stdout(Stdio::null()).spawn().unwrap();
    until("the instance answers", || world.path("data/checkrein.sock").exists() && world.run(&["tasks"]).code == 0);
    world.run(&["store", "verify"]).ends_with(0).says("another process has it open");
    world.run(&["store", "stats"]).ends_with(0);
    world.run(&["store", "backup", "backup"]).ends_with(0);
    world.run(&["store", "rebuild"]).ends_with(1).says("another instance is running");
    on(&world.path("backup"), &["show", "last"]).ends_with(0).says("completed");
    up.kill().unwrap();
    up.wait().unwrap();
    world.run(&["store", "rebuild"]).ends_with(0).says("the index was made anew");
    world.run(&["store", "verify"]).ends_with(0).says("index        sound");
}

#[test]
fn damage_is_named_with_its_place_and_what_to_do() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let data = world.path("data");
    let (blob, segment) = (blob_files(&data).remove(0), data.join("store/journal/00000001.jsonl"));
    let name = blob.file_name().unwrap().to_str().unwrap().to_owned();
    let content = std::fs::read(&blob).unwrap();
    std::fs::write(&blob, [&content[..], b"!"].concat()).unwrap();
    world.run(&["store", "verify"]).ends_with(7).says(&name).says("restore the blob");
    world.run(&["store", "backup", "bad"]).ends_with(7);
    std::fs::write(&blob, &content).unwrap();
    world.run(&["store", "verify"]).ends_with(0);

    let (_, chain) = world.json(&["checkpoint", "list", "last"]);
    let record = chain[0][0]["record"].as_str().unwrap_or_else(|| panic!("{chain:?}"));
    let hex = record.strip_prefix("sha256:").unwrap();
    let file = data.join("blobs").join(&hex[..2]).join(&hex[2..4]).join(hex);
    let content = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for args in [&["store", "verify"][..], &["checkpoint", "verify", "last"], &["checkpoint", "show", "last", "1"]] {
        world.run(args).ends_with(7).says("missing").says(hex);
    }
    std::fs::write(&file, &content).unwrap();
    world.run(&["store", "verify"]).ends_with(0);

    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replacen("\"submitted\"", "\"submitTed\"", 1)).unwrap();
    world.run(&["store", "verify"]).ends_with(7).says("00000001.jsonl is damaged at line 2").says("backup");
    let (code, values) = world.json(&["store", "verify"]);
    assert_eq!((code, values[0]["problems"][0]["try"].is_string()), (7, true));
    world.run(&["store", "rebuild", "--accept-loss"]).ends_with(7);
    std::fs::write(&segment, &text).unwrap();
    world.run(&["store", "verify"]).ends_with(0);
}

#[test]
fn a_journal_that_lost_its_end_stops_everything_until_a_person_accepts_it() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let data = world.path("data");
    let journal = data.join("store/journal");
    copy(&journal, &world.path("early"));
    world.run(&["run", "task.yaml", "--new"]).ends_with(0);
    let newer = world.task()["summary"]["id"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(&journal).unwrap();
    copy(&world.path("early"), &journal);

    world.run(&["tasks"]).ends_with(7).says("store verify");
    world.run(&["store", "verify"]).ends_with(7).says("the index knows of");
    let before = std::fs::read(journal.join("HEAD")).unwrap();
    let refused = world.run(&["store", "rebuild"]).ends_with(7);
    let said = format!("task {newer} is gone with all of its");
    assert!(refused.stdout.contains(&said), "{}", refused.stdout);
    assert_eq!(std::fs::read(journal.join("HEAD")).unwrap(), before);
    world.run(&["tasks"]).ends_with(7);
    world.run(&["store", "rebuild", "--accept-loss"]).ends_with(0).says(&said).says("made anew");
    world.run(&["store", "verify"]).ends_with(0);
    world.run(&["show", "last"]).ends_with(0).says("completed");

    // The head file alone: damaged, and ahead.
    std::fs::write(journal.join("HEAD"), "{").unwrap();
    world.run(&["tasks"]).ends_with(7);
    world.run(&["store", "rebuild"]).ends_with(7).says("the head file is missing or can't be read");
    world.run(&["store", "rebuild", "--accept-loss"]).ends_with(0);
    world.run(&["tasks"]).ends_with(0);
}

#[test]
fn a_folder_that_lost_its_journal_or_its_witnesses_is_never_a_first_run() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let (data, sound) = (world.path("data"), world.path("sound"));
    copy(&data, &sound);
    let again = |remove: &[&str]| {
        std::fs::remove_dir_all(&data).unwrap();
        copy(&sound, &data);
        for path in remove.iter().map(|name| data.join(name)) {
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        }
    };
    // With only the index, only the blobs, or both.
    for remove in [&["store/journal"][..], &["store"], &["store", "keys"], &["store/journal", "blobs"]] {
        again(remove);
        for args in [&["tasks"][..], &["run", "task.yaml"], &["gc"], &["store", "verify"], &["store", "rebuild"]] {
            world.run(args).ends_with(7).says("the journal is gone").says("restore a backup");
        }
        assert!(!data.join("store/journal").exists(), "nothing was changed");
    }
    again(&["store/journal/HEAD"]);
    world.run(&["store", "verify"]).ends_with(0).says("head file    missing");
    world.run(&["tasks"]).ends_with(0).says("head file was missing");
    assert_eq!(world.run(&["tasks"]).ends_with(0).stderr, "", "it is told once");
    again(&["store/journal/HEAD", "store/index"]);
    for args in [&["tasks"][..], &["store", "verify"]] {
        world.run(args).ends_with(7).says("whether the end of the journal is gone can't be told");
    }
    world.run(&["store", "rebuild"]).ends_with(7).says("--accept-loss");
    world.run(&["store", "rebuild", "--accept-loss"]).ends_with(0);
    world.run(&["store", "verify"]).ends_with(0).says("everything is as it was written");
}

#[test]
fn what_is_no_data_folder_is_named_with_what_to_do() {
    let world = World::new("echo 42 > answer.txt");
    let said = ["error: can't ", "Not a directory", "  at: ", "  try: something else lies at this place"];
    std::fs::write(world.path("data"), "a file").unwrap();
    for args in [&["tasks"][..], &["store", "verify"], &["store", "stats"], &["store", "rebuild"]] {
        let ran = world.run(args).ends_with(1);
        said.iter().for_each(|text| assert!(ran.stderr.contains(text), "{}", ran.stderr));
    }
    std::fs::remove_file(world.path("data")).unwrap();
    world.run(&["run", "task.yaml"]).ends_with(0);
    let lock = world.path("data/store/lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    world.run(&["tasks"]).ends_with(1).says("the lock").says("something else lies at this place");
}

/// A small disk of its own at a folder; freed when dropped. `None`, with the reason printed, where that is not allowed.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "none"]).arg(&at).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                eprintln!("not run: no disk can be mounted: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("not run: there is no `mount`: {error}");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Fills the disk at a folder but for this many bytes; returns the file that does.
fn fill(at: &Path, left: usize) -> PathBuf {
    let ballast = at.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    let block = [1; 4 << 10];
    let mut written = 0;
    while file.write_all(&block).is_ok() {
        written += block.len();
    }
    file.set_len((written.saturating_sub(left)) as u64).unwrap();
    ballast
}

#[test]
fn a_run_on_a_full_disk_ends_and_says_so_and_goes_on_when_there_is_space() {
    let world = World::new("head -c 3000000 /dev/urandom > large.bin\necho 42 > answer.txt");
    let Some(disk) = SmallDisk::mount(world.path("").join("data")) else { return };
    // A disk that has no space from the start, and one on which the work finds none.
    let ballast = fill(&disk.0, 0);
    world.run(&["run", "task.yaml"]).ends_with(1).says("full").says("free some space");
    std::fs::remove_file(ballast).unwrap();
    let ballast = fill(&disk.0, 2 << 20);
    let ran = world.run(&["run", "task.yaml"]).ends_with(1).says("full").says("free some space");
    assert!(ran.stdout.matches("given back").count() <= 2, "{}", ran.stdout);
    world.run(&["store", "verify"]).ends_with(0);
    std::fs::remove_file(ballast).unwrap();
    world.run(&["run", "task.yaml"]).ends_with(0).says("it goes on");
    world.run(&["store", "verify"]).ends_with(0);
}
