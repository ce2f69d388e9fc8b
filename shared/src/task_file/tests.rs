//! Task files as people write them, right and wrong.

use std::path::{Path, PathBuf};

use super::*;
use crate::records::{EffectClass, HomeDir, Risk, StepAction, WorkspaceSpec};

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        std::fs::create_dir_all(root.path().join("task/project/tools")).unwrap();
        std::fs::write(root.path().join("task/spec.md"), "The long text.\n").unwrap();
        std::fs::write(root.path().join("task/latin1.md"), b"caf\xe9").unwrap();
        std::fs::write(root.path().join("task/agent.sh"), "#!/bin/sh\n").unwrap();
        std::fs::write(root.path().join("task/project/tools/agent.sh"), "#!/bin/sh\n").unwrap();
        std::fs::write(root.path().join("task/policy.yaml"), "version: 1\n").unwrap();
        Self { root }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("task")
    }

    fn load(&self, yaml: impl AsRef<[u8]>) -> Result<TaskFile, TaskFileError> {
        let path = self.folder().join("task.yaml");
        std::fs::write(&path, yaml).unwrap();
        let around =
            Surroundings { home: Some(self.root.path().join("home")), data: self.root.path().join("home/data") };
        load(&path, None, &around)
    }

    /// The first problem as `line:column: message (hint)`.
    fn problem(&self, yaml: impl AsRef<[u8]>) -> String {
        let error = self.load(yaml).unwrap_err();
        let folder = self.folder().join("task.yaml").display().to_string();
        error.to_string().lines().next().unwrap().replace(&format!("{folder}:"), "")
    }
}

const WHOLE: &str = "\
task: fix the sum
objective: The sum of an empty list is 0.
spec: {file: spec.md}
constraints:
- {id: style, version: 2, text: Keep it POSIX.}
workspace: ./project
policy: policy.yaml
labels: {team: no, ticket: 12}
agent:
  command: [./agent.sh, --fast]
  env: [API_KEY]
  home: user
plan:
- {id: fix, prompt: Fix it., verify: [unit]}
- {id: check, run: make test, needs: [fix], risk: R0, effect: read_only}
- id: publish
  run: [make, publish]
  needs: [check]
  risk: R3
  effect: effectful
  timeout: 2m
  idempotent: true
  probe: [make, is-published]
  dry_run: make -n publish
  compensate: [make, unpublish]
budgets: {wall: 10m, rounds: 4}
";

#[test]
fn everything_that_a_task_file_says_arrives_resolved() {
    let place = Place::new();
    let file = place.load(WHOLE).unwrap();
    let folder = place.folder();
    assert_eq!(file.origin, folder.join("task.yaml"));
    assert_eq!(file.policy, Some(PolicyChoice::File(folder.join("policy.yaml"))));
    let spec = file.spec;
    assert_eq!(spec.spec.unwrap().text, "The long text.\n");
    assert_eq!(spec.workspace, WorkspaceSpec::Directory(folder.join("project").display().to_string()));
    assert_eq!(spec.labels["team"], "no", "YAML 1.1 would have made it false");
    let agent = spec.agent.unwrap();
    assert_eq!(agent.command, [folder.join("agent.sh").display().to_string(), "--fast".to_owned()]);
    assert_eq!(agent.home, HomeDir::User);
    let steps = spec.plan.steps;
    assert_eq!(steps[0].action, StepAction::Prompt("Fix it.".into()));
    assert_eq!(steps[1].action, StepAction::Run(vec!["sh".into(), "-c".into(), "make test".into()]));
    assert_eq!((steps[1].risk, steps[2].effect), (Risk::R0, EffectClass::Effectful));
    let handling = &steps[2].handling;
    assert_eq!((handling.timeout, handling.idempotent), (Some(crate::time::Span::from_secs(120)), true));
    assert_eq!(handling.probe.as_deref().unwrap(), ["make", "is-published"]);
    assert_eq!(handling.dry_run.as_deref().unwrap(), ["sh", "-c", "make -n publish"]);
    assert_eq!(handling.compensate.as_deref().unwrap(), ["make", "unpublish"]);
    assert!(steps[1].handling.is_default());
    assert_eq!(spec.budgets.wall, Some(crate::time::Span::from_secs(600)));
}

#[test]
fn an_objective_and_an_agent_are_a_plan() {
    let spec =
        Place::new().load("task: t\nobjective: do it\nworkspace: project\nagent: {command: my-agent}\n").unwrap().spec;
    assert_eq!(spec.plan, one_step("do it"));
    assert_eq!(spec.agent.unwrap().command, ["sh", "-c", "my-agent"]);
}

#[test]
fn an_agent_within_the_workspace_is_run_from_the_scratch() {
    let yaml = "task: t\nobjective: o\nworkspace: project\nagent: {command: [project/tools/agent.sh]}\n";
    assert_eq!(Place::new().load(yaml).unwrap().spec.agent.unwrap().command, ["./tools/agent.sh"]);
}

#[test]
fn another_workspace_can_be_given() {
    let place = Place::new();
    let path = place.folder().join("task.yaml");
    std::fs::write(&path, "task: t\nworkspace: nowhere\nplan: [{id: a, run: 'true'}]\n").unwrap();
    let around = Surroundings { home: None, data: place.root.path().join("home/data") };
    let spec = load(&path, Some(&place.folder().join("project")), &around).unwrap().spec;
    assert_eq!(spec.workspace, WorkspaceSpec::Directory(place.folder().join("project").display().to_string()));
}

#[test]
fn malformed_files_are_refused_with_place_and_advice() {
    let place = Place::new();
    let head = "task: t\nworkspace: project\n";
    let plan = "plan: [{id: a, run: 'true'}]\n";
    let agent = "objective: o\nagent: {command: [x]}\n";
    let cases: &[(&str, String, &str)] = &[
        ("empty", String::new(), "the file has no content"),
        ("comments", "# nothing\n".into(), "the file has no content"),
        ("list", "- task: t\n".into(), "1:1: the file is not a mapping"),
        ("two documents", format!("{head}{plan}---\n{head}"), "a second document"),
        ("tab", "task:\n\t- x\n".into(), "2:2: tabs"),
        ("unclosed", "task: [\n".into(), "not valid YAML"),
        ("unknown key", format!("{head}{plan}polcy: x\n"), "4:1: unknown key `polcy` (did you mean `policy`?)"),
        ("unknown step key", format!("{head}plan:\n- {{id: a, run: x, verfy: [u]}}\n"), "(did you mean `verify`?)"),
        ("unknown agent key", format!("{head}{plan}agent: {{command: x, hom: user}}\n"), "(did you mean `home`?)"),
        ("unknown spec key", format!("{head}{plan}spec: {{fil: x}}\n"), "unknown key `fil`"),
        ("unknown budget", format!("{head}{plan}budgets: {{token: 5}}\n"), "(did you mean `tokens`?)"),
        ("duplicate key", format!("{head}task: u\n{plan}"), "3:1: the key `task` stands twice, first in line 1"),
        ("merge key", format!("{head}{plan}budgets:\n  <<: {{turns: 1}}\n"), "merge keys"),
        ("no task", format!("workspace: project\n{plan}"), "`task` is missing"),
        ("no workspace", format!("task: t\n{plan}"), "`workspace` is missing"),
        ("empty value", format!("{head}objective:\n{plan}"), "`objective` has no value"),
        ("boolean as text", format!("task: true\nworkspace: project\n{plan}"), "expected text, found the boolean"),
        ("odd number", format!("{head}{plan}budgets: {{turns: 010}}\n"), "`budgets.turns`: expected a whole number"),
        ("separators", format!("{head}{plan}budgets: {{turns: 1_000}}\n"), "`budgets.turns`: expected a whole number"),
        ("negative", format!("{head}{plan}budgets: {{turns: -1}}\n"), "budgets.turns"),
        ("bad span", format!("{head}{plan}budgets: {{wall: 5}}\n"), "is not a duration"),
        ("bad home", format!("{head}{plan}agent: {{command: x, home: mine}}\n"), "unknown value `mine`"),
        ("bad risk", format!("{head}plan: [{{id: a, run: x, risk: high}}]\n"), "unknown value `high`"),
        ("blank task", format!("task: ' '\nworkspace: project\n{plan}"), "1:7: `task` is empty"),
        ("two lines", format!("task: \"a\\nb\"\nworkspace: project\n{plan}"), "more than one line"),
        ("nothing to do", head.into(), "the task has nothing to do"),
        ("objective without agent", format!("{head}objective: o\n"), "the task has nothing to do"),
        ("prompt without agent", format!("{head}plan: [{{id: a, prompt: p}}]\n"), "3:24: a prompt needs an agent"),
        (
            "run and prompt",
            format!("{head}{agent}plan:\n- {{id: a, run: x, prompt: y}}\n"),
            "6:3: step `a` needs `run` or `prompt`",
        ),
        ("neither", format!("{head}plan: [{{id: a}}]\n"), "step `a` needs `run` or `prompt`"),
        ("empty command", format!("{head}plan: [{{id: a, run: []}}]\n"), "the command is empty"),
        ("blank command", format!("{head}plan: [{{id: a, run: ' '}}]\n"), "the command is empty"),
        ("bad id", format!("{head}plan: [{{id: a/b, run: x}}]\n"), "is not a valid step id"),
        ("twice", format!("{head}plan:\n- {{id: a, run: x}}\n- {{id: a, run: y}}\n"), "5:3: two steps are called `a`"),
        ("unknown need", format!("{head}plan:\n- {{id: a, run: x, needs: [b]}}\n"), "step `a` needs `b`"),
        (
            "cycle",
            format!("{head}plan:\n- {{id: a, run: x, needs: [b]}}\n- {{id: b, run: x, needs: [a]}}\n"),
            "can never start",
        ),
        (
            "probe without effect",
            format!("{head}plan:\n- {{id: a, run: x, probe: y}}\n"),
            "4:26: `probe` says how an effect is handled, but step `a` has none",
        ),
        (
            "key without effect",
            format!("{head}plan: [{{id: a, run: x, idempotent: true}}]\n"),
            "add `effect: effectful` or `effect: irreversible`",
        ),
        (
            "probe of a prompt",
            format!("{head}{agent}plan: [{{id: a, prompt: x, effect: effectful, probe: y}}]\n"),
            "`probe` is for steps that `run` a command",
        ),
        ("no time", format!("{head}plan: [{{id: a, run: x, timeout: 0s}}]\n"), "`timeout` is zero"),
        ("long time", format!("{head}plan: [{{id: a, run: x, timeout: 8d}}]\n"), "longer than 7 days"),
        (
            "empty probe",
            format!("{head}plan: [{{id: a, run: x, effect: effectful, probe: []}}]\n"),
            "the command is empty (write `probe: [./probe.sh]`",
        ),
        ("odd idempotent", format!("{head}plan: [{{id: a, run: x, idempotent: yes}}]\n"), "idempotent"),
        ("missing workspace", format!("task: t\nworkspace: nowhere\n{plan}"), "2:12: the workspace"),
        ("root", format!("task: t\nworkspace: /\n{plan}"), "the workspace is `/`"),
        ("home", format!("task: t\nworkspace: ../home\n{plan}"), "your home folder"),
        ("a file", format!("task: t\nworkspace: spec.md\n{plan}"), "is not a folder"),
        ("missing spec", format!("{head}{plan}spec: {{file: none.md}}\n"), "can't be read"),
        ("spec twice", format!("{head}{plan}spec: {{file: spec.md, text: x}}\n"), "one of them"),
        ("spec folder", format!("{head}{plan}spec: {{file: project}}\n"), "is no plain file"),
        ("latin1 spec", format!("{head}{plan}spec: {{file: latin1.md}}\n"), "is not UTF-8"),
        ("blank spec", format!("{head}{plan}spec: ''\n"), "the specification is empty"),
        ("constraint without text", format!("{head}{plan}constraints: [{{id: a, version: 1}}]\n"), "exactly once"),
        ("constraint version", format!("{head}{plan}constraints: [{{id: a, version: 0, text: x}}]\n"), "starts at 1"),
        ("missing policy", format!("{head}{plan}policy: none.yaml\n"), "the policy file `none.yaml` does not exist"),
        ("missing agent", format!("{head}objective: o\nagent: {{command: [./none.sh]}}\n"), "can't be found"),
        ("env value", format!("{head}{plan}agent: {{command: x, env: [A=b]}}\n"), "is not the name of an environment"),
        ("own env", format!("{head}{plan}agent: {{command: x, env: [CHECKREIN_RESULT]}}\n"), "is set by Checkrein"),
        ("empty label", format!("{head}{plan}labels: {{a: ''}}\n"), "labels: at most"),
    ];
    let mut wrong = Vec::new();
    for (name, yaml, part) in cases {
        let problem = place.problem(yaml);
        if !problem.contains(part) || problem.contains("policy needs") || problem.contains("a policy file") {
            wrong.push(format!("{name}: {problem}\n  wanted: {part}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_problems_are_told_at_once() {
    let error = Place::new().load("task: ''\nworkspace: nowhere\nplan: [{id: a}]\n").unwrap_err();
    let lines: Vec<u64> = error.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn what_is_no_text_file_is_refused() {
    let place = Place::new();
    assert!(place.problem(b"task: \xff\n").contains("not UTF-8"));
    assert!(place.problem(vec![b'#'; 300 * 1024]).contains("larger than"));
    let bomb = (1..12).fold("a0: &a0 [x]\n".to_owned(), |text, n| {
        format!("{text}a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1)
    });
    let started = std::time::Instant::now();
    assert!(place.load(bomb).is_err());
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
    let around = Surroundings { home: None, data: "/nonexistent/data".into() };
    for missing in [Path::new("/nonexistent/task.yaml"), &place.folder()] {
        assert!(load(missing, None, &around).is_err());
    }
}

#[test]
fn a_byte_order_mark_and_dos_line_ends_mean_nothing() {
    let place = Place::new();
    let dos = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
    assert_eq!(place.load(dos).unwrap().spec, place.load(WHOLE).unwrap().spec);
}

#[test]
fn the_schema_for_editors_knows_what_the_loader_knows() {
    let schema = serde_json::to_value(file_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good = serde_json::json!({
        "task": "t", "workspace": ".", "spec": {"file": "spec.md"}, "agent": {"command": ["a"], "home": "user"},
        "plan": [{"id": "a", "run": "make"}, {"id": "b", "run": ["make"], "needs": ["a"], "risk": "R2"}],
        "budgets": {"wall": "10m"}
    });
    assert!(validator.is_valid(&good), "{:?}", validator.iter_errors(&good).next());
    for (key, value) in [("spec", serde_json::json!({"fil": "x"})), ("polcy", "x".into()), ("plan", "x".into())] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!validator.is_valid(&bad), "{key}");
    }
}
