//! The two walkthroughs of `docs/ARCHITECTURE.md`, with the real binary.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Ran, World};

/// The example `hello`, laid out in this world.
fn hello(world: &World) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/hello");
    let copied = Command::new("cp").args(["-r", example]).arg(world.path("hello")).status().unwrap();
    assert!(copied.success());
}

/// Judgement and stale fields of each review, oldest first.
fn judgements(task: &Value) -> Vec<String> {
    let of = |review: &Value| review["verdict"].as_str().unwrap_or("none").to_owned();
    task["reviews"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn walkthrough_a_lie_is_caught() {
    let world = World::new("");
    hello(&world);
    let before = world.read("hello/project/test.sh");
    let (code, values) = world.json(&["run", "hello/task.yaml"]);
    assert_eq!(code, 0);
    let task = world.task();
    assert_eq!(judgements(&task), ["changes_required", "changes_required", "approved"]);
    let rules: Vec<&str> = task["decisions"].as_array().unwrap().iter().map(|d| d["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["rejected", "rejected", "approved"]);
    // The second lie was seen as one: the agent changed the test, and the reviewer ran the base's.
    let second = values.iter().map(|v| &v["event"]).filter(|v| v["kind"] == "verdict_published").nth(1);
    let checks: Vec<&str> = second.unwrap()["data"]["verdict_published"]["verdict"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    assert!(checks.contains(&"weakened_tests") && checks.contains(&"verifiers"), "{checks:?}");
    // Only the honest change reached the project, and nothing is open.
    assert_eq!(world.read("hello/project/test.sh"), before);
    assert!(Command::new("sh").arg("test.sh").current_dir(world.path("hello/project")).status().unwrap().success());
    assert_eq!((task["applied"].as_array().unwrap().len(), task["findings"].as_array().unwrap().len()), (1, 0));
    world.run(&["checkpoint", "verify", "last"]).ends_with(0);
}

#[test]
fn walkthrough_the_process_is_killed() {
    let unkilled = World::new("");
    hello(&unkilled);
    unkilled.run(&["run", "hello/task.yaml"]).ends_with(0);
    let expected = unkilled.read("hello/project/total.sh");

    let world = World::new("");
    hello(&world);
    // Each kill comes a little later than the last, so that together they meet every stage of the run.
    let mut kills = 0;
    for delay in (1..).map(|n| Duration::from_millis(40 * n)) {
        let mut child = world.command(&["run", "hello/task.yaml"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        if child.try_wait().unwrap().is_some() || kills == 25 {
            let _ = child.kill();
            child.wait().unwrap();
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills >= 3, "only {kills} kills");
    finish(&world);
    assert_eq!(world.read("hello/project/total.sh"), expected);
    let tasks = world.json(&["tasks"]).1;
    assert_eq!(tasks[0].as_array().map_or(tasks.len(), Vec::len), 1, "one task, however often it was started");
    assert_eq!(world.task()["applied"].as_array().unwrap().len(), 1);
    world.run(&["checkpoint", "verify", "last"]).ends_with(0);
    assert!(!world.path("hello/project/.checkrein-apply").exists() || clean_stage(&world));
}

/// Runs the task to its end; where the kills have used up its attempts, a person lets it go on.
fn finish(world: &World) {
    for _ in 0..10 {
        if world.json(&["show", "last"]).1.first().is_some_and(|task| task["summary"]["state"] == "completed") {
            return;
        }
        let ran: Ran = world.run(&["run", "hello/task.yaml"]);
        match ran.code {
            0 => return,
            4 => drop(world.run(&["approve", "last"]).ends_with(0)),
            _ => drop(ran.ends_with(0)),
        }
    }
    panic!("it did not come to an end");
}

/// Whether the stage holds nothing but its own ignore file.
fn clean_stage(world: &World) -> bool {
    let entries = std::fs::read_dir(world.path("hello/project/.checkrein-apply")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name() != ".gitignore").count() == 0
}
