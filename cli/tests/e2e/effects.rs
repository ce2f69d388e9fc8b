//! What a step does outside happens once, or somebody is asked: `run` is killed in the middle of it.

use std::process::Stdio;

use serde_json::Value;

use crate::outside::{Outside, Reply};
use crate::support::{Ran, World, until};

/// A task that prepares its answer and then deploys it, which the outside counts.
fn world(outside: &Outside, deploy: &str) -> World {
    let world = World::new("");
    let call = outside.call("deploy $CHECKREIN_IDEMPOTENCY_KEY");
    let task = format!(
        "task: deploy\nobjective: answer.txt must say 42, and be deployed.\nworkspace: ./project\npolicy: policy.yaml\n\
         plan:\n- {{id: prepare, run: echo 42 > answer.txt}}\n- id: deploy\n  needs: [prepare]\n  run: {call}\n{deploy}"
    );
    world.write("task.yaml", &task);
    world
}

/// Runs the task until the outside hears of the deployment, and kills the run there.
fn killed_in_the_middle(world: &World, outside: &Outside) {
    outside.answers(|_| Reply::Never);
    let before = outside.calls("deploy").len();
    let mut command = world.command(&["run", "task.yaml"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the deployment begins", || outside.calls("deploy").len() > before);
    child.kill().unwrap();
    child.wait().unwrap();
    outside.answers(|_| Reply::Exit(0));
}

fn run(world: &World) -> Ran {
    world.run(&["run", "task.yaml"])
}

fn effects(world: &World) -> Vec<Value> {
    let (code, values) = world.json(&["effects", "list"]);
    assert_eq!(code, 0);
    values[0].as_array().unwrap().clone()
}

/// The only effect's key, and its status in a word.
fn effect(world: &World) -> (String, String) {
    let entries = effects(world);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let status = entries[0]["status"].as_object().unwrap().keys().next().unwrap().clone();
    (entries[0]["key"].as_str().unwrap().trim_start_matches("sha256:").to_owned(), status)
}

#[test]
fn with_a_key_it_runs_again_and_the_other_side_tells_the_repetition() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let world = world(&outside, "  effect: effectful\n  idempotent: true\n");
    killed_in_the_middle(&world, &outside);
    run(&world).ends_with(0);
    let calls = outside.calls("deploy");
    assert_eq!((calls.len(), &calls[0]), (2, &calls[1]), "the same key both times");
    assert_eq!(calls[0].len(), "deploy ".len() + 64);
    assert_eq!(effect(&world).1, "done");
    assert_eq!(world.read("project/answer.txt"), "42\n");
    // Whoever starts it once more, a supervisor after a crash perhaps, does not mean to do it twice.
    run(&world).ends_with(0).says("--new does it all again");
    assert_eq!((effects(&world).len(), outside.calls("deploy").len()), (1, 2));
    world.run(&["run", "task.yaml", "--new"]);
    assert_eq!((effects(&world).len(), outside.calls("deploy").len()), (2, 3), "another task is another effect");
    world.write("task.yaml", &world.read("task.yaml").replace("be deployed.", "be deployed again."));
    run(&world);
    assert_eq!(effects(&world).len(), 3, "a file that was changed is another task");
}

#[test]
fn a_probe_that_finds_it_done_completes_the_step_without_running_it() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let probe = outside.call("probe $CHECKREIN_IDEMPOTENCY_KEY");
    let world = world(&outside, &format!("  effect: effectful\n  probe: {probe}\n"));
    killed_in_the_middle(&world, &outside);
    run(&world).ends_with(0);
    assert_eq!((outside.calls("deploy").len(), outside.calls("probe").len()), (1, 1));
    let (key, status) = effect(&world);
    assert_eq!((outside.calls("probe")[0].as_str(), status.as_str()), (format!("probe {key}").as_str(), "done"));
}

#[test]
fn a_probe_that_finds_nothing_lets_it_run_when_it_can_no_longer_be_under_way() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let probe = outside.call("probe");
    let world = world(&outside, &format!("  effect: effectful\n  timeout: 1s\n  probe: {probe}\n"));
    killed_in_the_middle(&world, &outside);
    let killed_at = std::time::Instant::now();
    outside.answers(|call| Reply::Exit(i32::from(call.starts_with("probe"))));
    run(&world).ends_with(0);
    assert!(killed_at.elapsed().as_secs() >= 25, "an early `not done` counts for nothing");
    assert_eq!(outside.calls("deploy").len(), 2, "the first one never took effect");
    assert!(outside.calls("probe").len() >= 2, "asked at once, and again when it counts");
    assert_eq!(effect(&world).1, "done");
}

#[test]
fn with_neither_it_waits_for_a_person_who_says_what_happened() {
    let outside = Outside::new(|_| Reply::Exit(0));
    for (said, runs) in [("--done", 1), ("--not-done", 2)] {
        let before = outside.calls("deploy").len();
        let world = world(&outside, "  effect: effectful\n");
        killed_in_the_middle(&world, &outside);
        let (key, status) = effect(&world);
        let settle = format!("effects settle {}", &key[..12]);
        run(&world).ends_with(4).says(&settle).says("nobody knows whether step `deploy` took effect");
        run(&world).ends_with(4);
        assert_eq!(outside.calls("deploy").len() - before, 1, "however often it is started, never on a guess");
        assert!(status == "claimed" || status == "unknown", "{status}");
        world.run(&["inbox"]).ends_with(0).says(&settle);
        world.run(&["approve", "last"]).ends_with(2).says("effects settle");
        world.run(&["effects", "show", &key[..8]]).ends_with(0).says("unknown").says("settle it");
        world.run(&["effects", "settle", &key[..7], said, "--reason", "x"]).ends_with(2).says("at least 8");
        world.run(&["effects", "settle", &key[..8], said, "--reason", "I looked"]).ends_with(0);
        run(&world).ends_with(0);
        assert_eq!(outside.calls("deploy").len() - before, runs, "{said}");
        assert_eq!(world.read("project/answer.txt"), "42\n");
        world.run(&["effects", "settle", &key, "--not-done", "--reason", "no"]).ends_with(2).says("never changes");
    }
}

#[test]
fn an_agent_that_acts_outside_and_was_killed_waits_for_a_person_and_is_not_started_again() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let world = world(&outside, "");
    let call = outside.call("deploy $CHECKREIN_IDEMPOTENCY_KEY");
    let task = format!(
        "task: deploy\nobjective: answer.txt must say 42, and be announced.\nworkspace: ./project\npolicy: policy.yaml\n\
         agent: {{command: {call}}}\nplan:\n- {{id: prepare, run: echo 42 > answer.txt}}\n\
         - {{id: announce, needs: [prepare], prompt: Say it., effect: irreversible}}\n"
    );
    world.write("task.yaml", &task);
    killed_in_the_middle(&world, &outside);
    let (key, _) = effect(&world);
    run(&world).ends_with(4).says("nobody knows whether step `announce` took effect");
    run(&world).ends_with(4);
    assert_eq!(outside.calls("deploy").len(), 1, "never on a guess");
    // An agent that says that it failed may have done half of it.
    world.run(&["effects", "settle", &key, "--not-done", "--reason", "nothing arrived"]).ends_with(0);
    outside.answers(|_| Reply::Exit(3));
    run(&world).ends_with(4).says("nobody knows");
    assert_eq!(outside.calls("deploy").len(), 2);
    assert_eq!(outside.calls("deploy")[0], outside.calls("deploy")[1], "the same key, as it is the same run");
    world.run(&["effects", "settle", &key, "--done", "--reason", "it arrived"]).ends_with(0);
    run(&world).ends_with(0);
    assert_eq!(outside.calls("deploy").len(), 2);
}

/// A policy that wants a person before `deploy`.
const HUMAN: &str = "tools:\n- {match: 'step:deploy*', effect: irreversible, mode: human}\n";

#[test]
fn an_irreversible_step_runs_once_and_only_after_a_person_agreed_to_exactly_this_call() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let (dry, undo) = (outside.call("dry"), "[./undo.sh, 'release 1']");
    let world = world(&outside, &format!("  effect: effectful\n  dry_run: {dry}\n  compensate: {undo}\n"));
    world.policy(HUMAN);
    run(&world)
        .ends_with(4)
        .says("is about to run")
        .says("can't be undone")
        .says("its dry run printed `log:dry-run-deploy");
    assert_eq!((outside.calls("dry").len(), outside.calls("deploy").len()), (1, 0));
    let (key, status) = effect(&world);
    assert_eq!(status, "proposed");
    world.run(&["approve", "last"]).ends_with(0);
    // Another PATH is another call: what was agreed to was not this.
    let elsewhere = || {
        let mut command = world.command(&["run", "task.yaml"]);
        command.env("PATH", format!("{}:/opt/elsewhere", std::env::var("PATH").unwrap()));
        Ran::wait(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    elsewhere().ends_with(4);
    assert_eq!((effect(&world).1.as_str(), outside.calls("deploy").len()), ("proposed", 0));
    world.run(&["approve", "last"]).ends_with(0);
    elsewhere().ends_with(0);
    assert_eq!((outside.calls("deploy").len(), outside.calls("dry").len()), (1, 2));
    world
        .run(&["effects", "show", &key])
        .ends_with(0)
        .says("allowed by  ana")
        .says("undo it     ./undo.sh 'release 1'");
    assert_eq!(world.json(&["effects", "list", "last"]).1[0][0]["claims"], 1);
}

#[test]
fn a_task_that_is_cancelled_after_an_effect_says_how_to_undo_it() {
    let outside = Outside::new(|call| Reply::Exit(if call == "later" { 9 } else { 0 }));
    let later = outside.call("later");
    let more = format!(
        "  effect: effectful\n  compensate: [./undo.sh]\n- {{id: later, needs: [deploy], run: {later}, effect: irreversible}}\n"
    );
    let world = world(&outside, &more);
    world.policy(&HUMAN.replace("deploy*", "later").replace("human", "gate"));
    run(&world).ends_with(4).says("nobody knows whether step `later` took effect");
    world.run(&["cancel", "last"]).ends_with(0);
    world
        .run(&["show", "last"])
        .ends_with(0)
        .says("done outside, and still there")
        .says("undo it with: ./undo.sh")
        .says("nobody knows whether it happened; if so,");
    assert_eq!(outside.calls("deploy").len(), 1);
}

#[test]
fn what_a_policy_denies_never_runs() {
    let outside = Outside::new(|_| Reply::Exit(0));
    let world = world(&outside, "  effect: effectful\n");
    world.policy(&HUMAN.replace("human", "deny"));
    run(&world).ends_with(4).says("the policy denies `step:deploy`");
    assert!(outside.calls("deploy").is_empty() && effects(&world).is_empty());
    world.run(&["effects", "list"]).ends_with(0).says("no task did anything outside");
    world.run(&["effects", "show", "0123456789"]).ends_with(2).says("there is no effect");
}
