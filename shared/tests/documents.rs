//! What the documents show is what the code reads: every example in them is
//! loaded, and the lists of words in them are whole.

#![expect(clippy::unwrap_used, reason = "a helper that can't go on fails the test that called it")]

use std::path::Path;

use checkrein_shared::policy::{self, Action, AgentKind, CheckName, RuleEvent, file_schema};
use checkrein_shared::records::{ResultFile, Trigger};
use checkrein_shared::task_file::{self, PolicyChoice, Surroundings};
use serde_json::Value;

fn document(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)).unwrap()
}

/// The fenced blocks of a language, each with the line where it begins.
fn blocks(text: &str, language: &str) -> Vec<(usize, String)> {
    let fence = format!("```{language}");
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match open.as_mut() {
            Some(_) if line == "```" => found.extend(open.take()),
            Some((_, block)) => block.extend([line, "\n"]),
            None if line == fence => open = Some((number + 2, String::new())),
            None => {}
        }
    }
    found
}

#[test]
fn every_policy_that_is_shown_loads_without_a_warning() {
    let text = document("docs/policy.md");
    let mut shown = 0;
    for (line, block) in blocks(&text, "yaml").iter().filter(|(_, b)| b.starts_with("version:")) {
        let resolved = policy::load_text("policy.yaml", block.as_bytes());
        let policy = resolved.and_then(|r| r.compile()).unwrap_or_else(|e| panic!("docs/policy.md:{line}: {e}"));
        let warnings: Vec<String> = policy::lint(&policy, AgentKind::Command).iter().map(ToString::to_string).collect();
        // A command agent can't fire every trigger that the built-in policies have on.
        let ours: Vec<&String> = warnings.iter().filter(|w| w.contains("policy.yaml")).collect();
        assert!(ours.is_empty(), "docs/policy.md:{line}: {ours:#?}");
        shown += 1;
    }
    assert!(shown >= 4, "docs/policy.md shows {shown} policies");
}

#[test]
fn the_schema_of_policies_accepts_what_the_loader_accepts() {
    let schema = jsonschema::validator_for(&file_schema()).unwrap();
    let built_in = policy::BUILT_IN.iter().map(|name| policy::built_in(name).unwrap().to_owned());
    let shown = blocks(&document("docs/policy.md"), "yaml").into_iter().map(|(_, block)| block);
    for text in built_in.chain(shown).filter(|t| t.contains("version: 1\n")) {
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{text}");
    }
    for wrong in ["{\"version\": 1, \"rule\": []}", "{\"version\": 2}", "{\"version\": 1, \"rules\": {}}", "[]"] {
        assert!(!schema.is_valid(&serde_json::from_str(wrong).unwrap()), "{wrong}");
    }
}

#[test]
fn the_policy_guide_names_every_word_that_a_policy_may_use() {
    let text = document("docs/policy.md");
    let words = Action::ALL.iter().map(|w| w.as_str()).chain(CheckName::ALL.iter().map(|w| w.as_str()));
    let words = words.chain(Trigger::ALL.iter().map(|w| w.as_str())).chain(RuleEvent::ALL.iter().map(|w| w.as_str()));
    let missing: Vec<&str> = words.filter(|word| !text.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "docs/policy.md says nothing of {missing:?}");
    let schema = file_schema();
    let sections = schema["properties"].as_object().unwrap().keys();
    let missing: Vec<&String> = sections.filter(|s| !text.contains(&format!("\n| `{s}` |"))).collect();
    assert!(missing.is_empty(), "the table of docs/policy.md has no {missing:?}");
}

#[test]
fn the_task_file_that_is_shown_to_agents_is_one() {
    let shown = blocks(&document("docs/agents.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("project")).unwrap();
    let around = Surroundings { home: None, data: folder.path().join("data") };
    for (line, block) in &shown {
        let path = folder.path().join("task.yaml");
        std::fs::write(&path, block).unwrap();
        let task = task_file::load(&path, None, &around).unwrap_or_else(|e| panic!("docs/agents.md:{line}: {e}"));
        assert!(task.spec.agent.is_some(), "docs/agents.md:{line} shows a task without an agent");
        let value: Value = serde_saphyr::from_str(block).unwrap();
        let schema = jsonschema::validator_for(task_file::file_schema().as_value()).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "docs/agents.md:{line}: {errors:#?}");
    }
    assert_eq!(shown.len(), 1);
}

#[test]
fn every_example_is_a_task_whose_policy_loads_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples");
    let around = Surroundings { home: None, data: std::env::temp_dir().join("checkrein-no-data") };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("task.yaml");
        let task = task_file::load(&path, None, &around).unwrap_or_else(|e| panic!("{e}"));
        let Some(PolicyChoice::File(policy)) = task.policy else { panic!("{} has no policy file", path.display()) };
        let policy = policy::load_file(&policy).and_then(|r| r.compile()).unwrap_or_else(|e| panic!("{e}"));
        let warnings: Vec<String> = policy::lint(&policy, AgentKind::Command).iter().map(ToString::to_string).collect();
        let ours: Vec<&String> = warnings.iter().filter(|w| !w.contains("policies/")).collect();
        assert!(ours.is_empty(), "{ours:#?}");
        seen += 1;
    }
    assert!(seen >= 3, "{seen} examples");
}

#[test]
fn the_result_file_that_is_shown_to_agents_is_one() {
    let shown = blocks(&document("docs/agents.md"), "json");
    assert_eq!(shown.len(), 1);
    let file = ResultFile::parse(shown[0].1.as_bytes()).unwrap();
    assert!(file.claims.iter().any(|c| !c.refs.is_empty()) && !file.open_issues.is_empty());
}
