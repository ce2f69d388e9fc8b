//! `gc` as people use it: alone, beside a running instance, and on damaged data.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::support::{World, blob_files, until};

/// Makes every blob look as if it had been put days ago; returns their files.
fn age(world: &World) -> Vec<PathBuf> {
    let files = blob_files(&world.path("data"));
    for path in &files {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
    }
    files
}

/// Puts a blob that nothing names; returns its file.
fn orphan(world: &World) -> PathBuf {
    let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let path = world.path("data/blobs").join(&hex[..2]).join(&hex[2..4]).join(hex);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "abc").unwrap();
    path
}

#[test]
fn garbage_of_a_finished_run_goes_and_everything_that_can_be_looked_at_stays() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let orphan = orphan(&world);
    world.run(&["gc"]).ends_with(0).says("freed 0 blobs").says("so somebody may need them");
    let files = age(&world);
    world.run(&["gc", "--dry-run"]).ends_with(0).says("would free").says("nothing was changed");
    assert!(files.iter().all(|file| file.exists()));
    let (code, values) = world.json(&["gc"]);
    assert_eq!(code, 0);
    let freed = values[0]["freed"]["count"].as_u64().unwrap();
    let left = files.iter().filter(|file| file.exists()).count() as u64;
    assert!(freed >= 1 && freed + left == files.len() as u64, "{freed} and {left} of {}", files.len());
    assert!(!orphan.exists());
    world.run(&["checkpoint", "verify", "last"]).ends_with(0);
    world.run(&["checkpoint", "restore", "last", "1", "--to", "look"]).ends_with(0);
    let (_, refs) = world.json(&["evidence", "list", "last"]);
    for evidence in refs[0].as_array().unwrap() {
        let reference = evidence["reference"].as_str().unwrap();
        world.run(&["evidence", "get", "last", reference]).ends_with(0);
    }
}

#[test]
fn a_running_instance_collects_for_whoever_asks() {
    let world = World::new("echo 42 > answer.txt");
    let mut up = world.command(&["up"]).spawn().unwrap();
    until("the instance answers", || world.run(&["tasks"]).code == 0 && world.path("data/checkrein.sock").exists());
    let orphan = orphan(&world);
    age(&world);
    world.run(&["gc"]).ends_with(0).says("freed 1 blob (3 B)");
    assert!(!orphan.exists());
    up.kill().unwrap();
    up.wait().unwrap();
}

#[test]
fn damage_is_reported_and_nothing_is_removed() {
    let world = World::new("echo 42 > answer.txt");
    world.run(&["run", "task.yaml"]).ends_with(0);
    let task = world.task();
    let record = task["head"]["record"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let orphan = orphan(&world);
    age(&world);
    std::fs::remove_file(world.path("data/blobs").join(&record[..2]).join(&record[2..4]).join(&record)).unwrap();
    let ran = world.run(&["gc"]).ends_with(7);
    assert!(ran.stderr.contains("nothing was removed"), "{}", ran.stderr);
    assert!(orphan.exists());
}
