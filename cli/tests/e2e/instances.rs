//! Several processes on one data folder.

use std::process::Stdio;

use crate::support::{Ran, World, until};

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
fn whoever_watches_a_run_ends_as_it_does() {
    let world = World::new("sleep 2; echo 42 > answer.txt");
    let mut first = world.command(&["run", "task.yaml"]);
    let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the first run", || world.path("data/checkrein.sock").exists());
    world.run(&["run", "task.yaml"]).ends_with(0).says("this one watches");
    Ran::wait(first).ends_with(0);
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

/// One request, written by hand: what a client in another language sees.
fn request(world: &World, head: &str, body: &str) -> (String, serde_json::Value) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(world.path("data/checkrein.sock")).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/problem+json"), "{head}");
    (head.split_whitespace().nth(1).unwrap().to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn what_makes_no_sense_is_a_problem_document() {
    let world = World::new("");
    let server = up(&world);
    let missing = format!("GET /v1/blobs/sha256:{}", "0".repeat(64));
    for (head, body, status, kind) in [
        ("GET /v1/nothing", "", "404", "not-found"),
        ("DELETE /v1/tasks", "", "400", "invalid"),
        ("GET /v1/tasks/none", "", "404", "not-found"),
        ("GET /v1/tasks/-x", "", "400", "invalid"),
        ("GET /v1/tasks/none/events?after=x", "", "400", "invalid"),
        ("POST /v1/tasks", "{}", "400", "invalid"),
        ("POST /v1/tasks", "", "400", "invalid"),
        ("POST /v1/tasks/none/actions", "{\"by\":\"ana\",\"by\":\"bo\"}", "400", "invalid"),
        ("POST /v1/tasks/none/actions", "{\"by\":\"ana\",\"action\":{\"pause\":{}}}", "404", "not-found"),
        ("GET /v1/blobs/sha256:0", "", "400", "invalid"),
        (missing.as_str(), "", "404", "not-found"),
    ] {
        let (found, problem) = request(&world, head, body);
        assert_eq!((found.as_str(), problem["type"].as_str()), (status, Some(kind)), "{head}: {problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    stop(server);
}
