//! `run` as people use it: exit codes, parking, approving, resuming.

use crate::support::{World, until};

/// An agent that does its work.
const HONEST: &str = "echo 42 > answer.txt";
/// One that never does it.
const WRONG: &str = "echo \"$CHECKREIN_ATTEMPT\" > answer.txt";
/// The policy that gives it one retry.
const ONE_RETRY: &str =
    "rules:\n- {id: one-retry, on: [round], when: 'round.rejections > 0', action: retry, limit: 1, then: escalate}\n";
/// The policy that asks a person about everything.
const ASK: &str = "rules:\n- {id: ask, floor: true, on: [round], when: 'round.rejections == 0', action: escalate, message: somebody should look}\n";

#[test]
fn good_work_is_applied_and_the_run_is_completed() {
    let world = World::new(HONEST);
    let ran = world.run(&["run", "task.yaml"]).ends_with(0).says("completed");
    assert_eq!(world.read("project/answer.txt"), "42\n");
    assert!(!ran.stdout.contains('\u{1b}'), "piped output has no escape sequences");
    world.run(&["show", "last", "--why"]).ends_with(0).says("by rule `approved`").says("policy sha256:");
    world.run(&["checkpoint", "verify", "last"]).ends_with(0).says("each with the hash that it says");
    world.run(&["checkpoint", "diff", "last", "1"]).ends_with(0).says("+42");
    let (_, refs) = world.json(&["evidence", "list", "last"]);
    let diff =
        refs[0].as_array().unwrap().iter().find_map(|e| e["reference"].as_str().filter(|r| r.starts_with("diff:")));
    world.run(&["evidence", "get", "last", diff.unwrap()]).ends_with(0).says("+42");
    world.run(&["checkpoint", "restore", "last", "1", "--to", "look"]).ends_with(0);
    assert_eq!(world.read("look/answer.txt"), "42\n");
}

#[test]
fn run_for_programs_prints_events_and_then_the_task() {
    let world = World::new(HONEST);
    let (code, values) = world.json(&["run", "task.yaml"]);
    assert_eq!(code, 0);
    let (last, events) = values.split_last().unwrap();
    assert!(events.len() > 3 && events.iter().all(|value| value["event"]["kind"].is_string()));
    assert_eq!((last["exit"].as_i64(), last["task"]["summary"]["state"].as_str()), (Some(0), Some("completed")));
}

#[test]
fn a_task_that_waits_for_a_person_is_parked_and_goes_on_when_it_is_approved() {
    let world = World::new(HONEST);
    world.policy(ASK);
    let ran = world.run(&["run", "task.yaml"]).ends_with(4).says("somebody should look").says("approve t-");
    assert_eq!(world.read("project/answer.txt"), "41\n", "nothing reaches the target unapproved");
    assert!(ran.stdout.contains("--hash sha256:"));

    world.run(&["inbox"]).ends_with(0).says("somebody should look");
    let other = format!("sha256:{}", "0".repeat(64));
    world.run(&["approve", "last", "--hash", &other]).ends_with(2);
    let asked = world.task()["item"]["checkpoint_hash"].as_str().unwrap().to_owned();
    let (short, too_short) = (&asked["sha256:".len()..][..12], &asked[.."sha256:".len() + 11]);
    world.run(&["approve", "last", "--hash", too_short]).ends_with(2).says("12 digits are needed");
    world.run(&["approve", "last", "--hash", "000000000000"]).ends_with(2).says("asks about");
    world.run(&["approve", "last", "--hash", "the last one"]).ends_with(2);
    world.run(&["approve", "last", "--hash", short, "--note", "read"]).ends_with(0).says("ana approved");
    world.run(&["run", "task.yaml"]).ends_with(0).says("it goes on");
    assert_eq!(world.read("project/answer.txt"), "42\n");
    assert_eq!(world.task()["applied"].as_array().unwrap().len(), 1);
    let after = world.run(&["checkpoint", "diff", "last", "head"]).ends_with(0).says("no change").says("had one: ");
    assert!(after.stdout.contains("checkpoint diff t-"), "{}", after.stdout);
}

#[test]
fn a_task_can_be_steered_while_it_waits() {
    let world = World::new(HONEST);
    world.policy(ASK);
    world.run(&["run", "task.yaml"]).ends_with(4);
    world.run(&["claim", "last"]).ends_with(0).says("ana claimed");
    world.run(&["pause", "last"]).ends_with(0).says("is paused");
    world.run(&["run", "task.yaml"]).ends_with(4).says("resume t-");
    world.run(&["resume", "last"]).ends_with(0).says("is waiting");
    world.run(&["amend", "last", "--objective", "42, and nothing else."]).ends_with(0);
    world.run(&["show", "last"]).ends_with(0).says("42, and nothing else.").says("stale (changed: spec_hash)");
    world.run(&["run", "task.yaml"]).ends_with(4).says("the file was changed since");
    world.run(&["run", "task.yaml", "--new"]).ends_with(4);
    world.run(&["cancel", "last"]).ends_with(0).says("is cancelled");
    let (_, tasks) = world.json(&["tasks"]);
    let states: Vec<&str> = tasks[0].as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["cancelled", "waiting"]);
}

#[test]
fn what_people_say_has_its_exit_code() {
    let world = World::new(WRONG);
    world.policy(ONE_RETRY);
    world.run(&["run", "task.yaml"]).ends_with(4);
    world.run(&["reject", "last", "--reason", "no"]).ends_with(0);
    world.run(&["run", "task.yaml"]).ends_with(3).says("blocked");
    world.run(&["cancel", "last"]).ends_with(0);
    // The file's only task is over: a new one begins.
    world.run(&["run", "task.yaml"]).ends_with(4);
    assert_eq!(world.json(&["tasks"]).1[0].as_array().unwrap().len(), 2);
}

#[test]
fn a_person_takes_over_and_hands_back_what_is_then_reviewed() {
    let world = World::new(WRONG);
    world.policy(ONE_RETRY);
    world.run(&["run", "task.yaml"]).ends_with(4);
    world.run(&["takeover", "last", "--to", "mine"]).ends_with(0).says("is yours");
    world.run(&["run", "task.yaml"]).ends_with(4);
    world.write("mine/answer.txt", "42\n");
    world.run(&["handback", "last", "--note", "by hand"]).ends_with(0).says("handed back");
    world.run(&["run", "task.yaml"]).ends_with(0);
    assert_eq!(world.read("project/answer.txt"), "42\n");
    world.run(&["handback", "last"]).ends_with(2).says("is not taken over");
}

#[test]
fn an_agent_with_a_home_of_its_own_reads_no_key_of_the_user() {
    let world = World::new("");
    world.write("home/.ssh/id_ed25519", "a private key");
    let key = world.path("home/.ssh/id_ed25519");
    world.script("agent.sh", &format!("echo 42 > answer.txt\ncat '{}' > taken.txt || rm taken.txt", key.display()));
    world.run(&["run", "task.yaml"]).ends_with(0);
    assert!(!world.path("project/taken.txt").exists());
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    // The agent waits for a file outside of its scratch, so that the kill hits it at work.
    let world = World::new("");
    let gate = world.path("gate").display().to_string();
    world.script("agent.sh", &format!("until [ -e '{gate}' ]; do sleep 0.05; done\necho 42 > answer.txt"));
    let log = std::fs::File::create(world.path("log")).unwrap();
    let mut child = world.command(&["run", "task.yaml"]).stdout(log).spawn().unwrap();
    until("the agent's start", || world.read("log").contains("starts step"));
    child.kill().unwrap();
    child.wait().unwrap();

    world.write("gate", "");
    world.run(&["run", "task.yaml"]).ends_with(0).says("it goes on");
    assert_eq!(world.read("project/answer.txt"), "42\n");
    assert_eq!(world.json(&["tasks"]).1[0].as_array().unwrap().len(), 1);
    assert_eq!(world.task()["applied"].as_array().unwrap().len(), 1);
}

#[test]
fn an_interrupted_run_parks_and_says_how_to_go_on() {
    let world = World::new("sleep 30");
    let log = std::fs::File::create(world.path("log")).unwrap();
    let mut child = world.command(&["run", "task.yaml"]).stdout(log).spawn().unwrap();
    until("the agent's start", || world.read("log").contains("starts step"));
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(world.read("log").contains("parked; go on with"), "{}", world.read("log"));
    assert!(!world.task()["summary"]["state"].as_str().unwrap().is_empty());
}

#[test]
fn an_objective_and_an_agent_need_no_file() {
    let world = World::new(HONEST);
    let run = ["run", "make it 42", "--agent", "./agent.sh", "--workspace", "project", "--policy", "policy.yaml"];
    world.run(&run).ends_with(0);
    assert_eq!(world.read("project/answer.txt"), "42\n");
}
