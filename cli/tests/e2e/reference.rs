//! Schemas, completions and `doctor`.

use crate::support::World;

#[test]
fn every_schema_that_is_listed_can_be_printed() {
    let world = World::new("");
    let names = world.run(&["schema"]).ends_with(0).stdout;
    assert!(names.lines().any(|name| name == "checkpoint") && names.lines().any(|name| name == "task-file"));
    for name in names.lines() {
        let (code, values) = world.json(&["schema", name]);
        assert_eq!((code, values.len()), (0, 1), "{name}");
        assert!(values[0]["$schema"].is_string(), "{name}");
    }
}

#[test]
fn completions_know_the_commands() {
    let world = World::new("");
    for shell in ["bash", "zsh", "fish"] {
        world.run(&["completions", shell]).ends_with(0).says("request-changes");
    }
}

#[test]
fn doctor_finds_what_the_tests_need() {
    let world = World::new("");
    let ran = world.run(&["doctor"]).ends_with(0).says("supervisor").says("none is running");
    assert!(!ran.stdout.lines().any(|line| line.starts_with("bad")), "{}", ran.stdout);
    assert!(!world.path("data").exists(), "it leaves nothing behind");
}
