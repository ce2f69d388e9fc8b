//! Malformed input: what, where, what to do, exit code 2; and nothing is half-started.

use crate::support::{Ran, World, is_empty_or_absent};

/// The error without the world's folder, which is another one each time.
fn error(world: &World, args: &[&str], code: i32) -> String {
    let Ran { stdout, stderr, .. } = world.run(args).ends_with(code);
    assert_eq!(stdout, "", "mistakes go to standard error");
    assert!(is_empty_or_absent(&world.path("data/store")), "nothing was started");
    stderr.replace(&world.path("").display().to_string(), "/w/")
}

#[test]
fn malformed_files_are_refused_before_anything_starts() {
    let world = World::new("");
    let mut errors = String::new();
    let cases: &[(&str, &str)] = &[
        ("duplicate.yaml", "task: a\ntask: b\nworkspace: project\nplan: [{id: a, run: 'true'}]\n"),
        ("typo.yaml", "task: a\nworkspce: project\nplan: [{id: a, run: 'true'}]\n"),
        ("nothing.yaml", "task: a\nworkspace: project\n"),
        ("home.yaml", "task: a\nworkspace: home\nplan: [{id: a, run: 'true'}]\n"),
        ("data.yaml", "task: a\nworkspace: data\nplan: [{id: a, run: 'true'}]\n"),
        (
            "verify.yaml",
            "task: a\nworkspace: project\npolicy: policy.yaml\nplan: [{id: a, run: 'true', verify: [unit]}]\n",
        ),
        ("three.yaml", "task: ''\nworkspace: nowhere\nplan: [{id: a}]\n"),
    ];
    world.write("home/keep", "");
    world.write("data/keep", "");
    for (name, text) in cases {
        world.write(name, text);
        errors.push_str(&format!("$ checkrein run {name}\n{}\n", error(&world, &["run", name], 2)));
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn malformed_policies_are_refused_before_anything_starts() {
    let world = World::new("");
    let mut errors = String::new();
    for text in [
        "",
        "- version: 1\n",
        "version: 1\nrules:\n- {id: a, on: [round], when: 'round.rund > 3 || true', action: continue}\n",
        "version: 1\nrules:\n- {id: a, on_fial: block}\n",
        "version: 1\nextends: nobody\n",
        "version: 010\n",
    ] {
        world.write("policy.yaml", text);
        let run = error(&world, &["run", "task.yaml"], 2);
        let check = error(&world, &["policy", "check", "policy.yaml"], 2);
        let places = |text: &str| text.lines().filter(|line| !line.starts_with("  at:")).collect::<Vec<_>>().join("\n");
        assert_eq!(places(&run), places(&check), "`run` and `policy check` say the same");
        errors.push_str(&format!("--- {text:?}\n{check}\n"));
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    let world = World::new("");
    let mut errors = String::new();
    for args in [
        &["run", "fix it"] as &[&str],
        &["run", ""],
        &["run", "fix it", "--agent", "./missing.sh", "--workspace", "project"],
        &["run", "fix it", "--agent", "claude"],
        &["run", "task.yaml", "--agent", "claude"],
        &["run", "missing.yaml"],
        &["run", "task.yaml", "--policy", "nobody"],
        &["run", "task.yaml", "--workspace", "/"],
        &["schema", "verdit"],
        &["init", "project"],
        &["amend", "last", "--spec", "missing.md"],
    ] {
        errors.push_str(&format!("$ checkrein {}\n{}\n", args.join(" "), error(&world, args, 2)));
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn mistakes_about_tasks_are_refused_with_advice() {
    let world = World::new("");
    for (args, part) in [
        (&["show"] as &[&str], "there is no task yet"),
        (&["show", "t-1"], "there is no task `t-1`"),
        (&["approve", "last"], "there is no task yet"),
        (&["checkpoint", "show", "last"], "there is no task yet"),
    ] {
        world.run(args).ends_with(2).says(part).says("  try: ");
    }
    world.run(&["frobnicate"]).ends_with(2).says("unrecognized subcommand");
    world.run(&["amend", "last"]).ends_with(2).says("required");
}

#[test]
fn errors_for_programs_are_json_too() {
    let world = World::new("");
    let ran = world.run(&["run", "missing.yaml", "--json"]).ends_with(2);
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["exit"], 2);
    assert!(error["errors"][0]["try"].is_string() && ran.stdout.is_empty());
}

#[test]
fn init_never_overwrites_what_is_there() {
    let world = World::new("");
    world.write("project/Makefile", "test:\n\tgrep -qx 42 answer.txt\n");
    world.run(&["init", "project"]).ends_with(0).says("make test");
    world.write("project/checkrein.yaml", "mine\n");
    world.run(&["init", "project"]).ends_with(2).says("nothing was written");
    assert_eq!(world.read("project/checkrein.yaml"), "mine\n");
    world.run(&["init", "project", "--force", "--agent", "codex"]).ends_with(0);
    world.run(&["run", "project/checkrein.yaml", "--dry-run"]).ends_with(0).says("nothing was started");
    world.run(&["policy", "check", "project/checkrein-policy.yaml"]).ends_with(0).says("1 verifiers");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new("");
    let binary = env!("CARGO_BIN_EXE_checkrein");
    let line = format!("{binary} schema checkpoint | head -1; {binary} --help | head -1");
    let ran =
        Ran::from(std::process::Command::new("sh").args(["-c", &line]).current_dir(world.path("")).output().unwrap());
    assert_eq!(ran.stderr, "");
}
