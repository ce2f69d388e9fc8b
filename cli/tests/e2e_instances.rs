//! Several processes on one data folder.

mod support;

use std::process::Stdio;

use support::{Ran, World, until};

/// Starts `up` and waits until it answers.
fn up(world: &World) -> std::process::Child {
    let child = world.command(&["up"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("`up` answers", || world.run(&["doctor"]).stdout.contains(&format!("process {}", child.id())));
    child
}

fn stop(mut child: std::process::Child) {
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "`up` ends well when it is told to");
}

#[test]
fn commands_find_the_instance_that_runs() {
    let world = World::new("echo 42 > answer.txt");
    let server = up(&world);
    world.run(&["submit", "task.yaml"]).ends_with(0).says("watch it");
    world.run(&["watch", "last", "--from-start"]).ends_with(0).says("completed");
    world.run(&["run", "task.yaml"]).ends_with(0).says("does the work");
    assert_eq!(world.json(&["tasks"]).1[0].as_array().unwrap().len(), 2);
    world.run(&["checkpoint", "verify", "last"]).ends_with(0);
    world.run(&["show", "none"]).ends_with(2).says("there is no task `none`");
    stop(server);
    world.run(&["tasks"]).ends_with(0).says("completed");
}

#[test]
fn a_second_instance_is_refused_and_the_first_goes_on() {
    let world = World::new("echo 42 > answer.txt");
    let server = up(&world);
    world.run(&["up"]).ends_with(1).says("another instance is running");
    world.run(&["submit", "task.yaml"]).ends_with(0);
    world.run(&["watch", "last"]).ends_with(0);
    stop(server);
}

#[test]
fn a_run_of_another_task_is_refused_while_one_runs() {
    let world = World::new("sleep 30");
    let log = std::fs::File::create(world.path("log")).unwrap();
    let mut first = world.command(&["run", "task.yaml"]).stdout(log).spawn().unwrap();
    until("the first run answers", || world.read("log").contains("starts step"));
    world.write("other.yaml", "task: other\nworkspace: project\nplan: [{id: a, run: 'true'}]\n");
    world.run(&["run", "other.yaml"]).ends_with(1).says("another instance is running").says("try: ");
    // The same task can be watched, paused and cancelled from elsewhere.
    let watcher = world.command(&["watch", "last"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.run(&["cancel", "last"]).ends_with(0);
    assert_eq!(first.wait().unwrap().code(), Some(6));
    Ran::wait(watcher).ends_with(6);
}

#[test]
fn a_socket_that_was_left_behind_is_no_instance() {
    let world = World::new("echo 42 > answer.txt");
    let mut server = up(&world);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(world.path("data/checkrein.sock").exists());
    world.run(&["run", "task.yaml"]).ends_with(0);
}

#[test]
fn the_socket_and_the_data_are_nobody_elses_business() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new("");
    let server = up(&world);
    let mode = |name: &str| world.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/checkrein.sock")), (0o700, 0o600));
    stop(server);
}
