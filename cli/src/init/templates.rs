//! The texts of the files that `init` writes.

use std::path::Path;

use super::POLICY_FILE;
use super::detect::Project;
use crate::agents;

/// The task file.
pub(super) fn task(folder: &Path, agent: Option<&str>) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let agent = agent.map_or_else(example_agent, |agent| agent_text(folder, agent));
    format!(
        "\
# A task for Checkrein. `checkrein run checkrein.yaml` runs it; `checkrein schema task-file` tells every key.
task: {task}
objective: >-
  Say here in a sentence or two what is to be achieved.
workspace: .
policy: {POLICY_FILE}

# The program that does the work. It finds its instruction in the file that CHECKREIN_INSTRUCTION names, and works in
# a copy of this folder; what it changes is reviewed before it comes back.
{agent}
# Longer texts and rules, if you have some:
# spec: {{file: spec.md}}
# constraints:
# - {{id: style, version: 1, text: Keep the public API as it is.}}

# Without a plan the agent gets the objective. With one, each step runs on its own:
# plan:
# - {{id: change, prompt: Make the change., verify: [tests]}}
# - {{id: format, run: [make, format], needs: [change]}}
",
        task = scalar(&format!("a change of {name}")),
    )
}

fn agent_text(folder: &Path, agent: &str) -> String {
    match agents::resolve(agent, Some(folder), |name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        Ok(spec) => {
            let command: Vec<String> = spec.command.iter().map(|arg| scalar(arg)).collect();
            let home = match spec.home {
                checkrein_shared::records::HomeDir::User => "user",
                checkrein_shared::records::HomeDir::Private => "private",
            };
            format!("agent:\n  command: [{}]\n  env: [{}]\n  home: {home}\n", command.join(", "), spec.env.join(", "))
        }
        Err(_) => example_agent(),
    }
}

fn example_agent() -> String {
    "agent:\n  command: 'claude --print --permission-mode acceptEdits < \"$CHECKREIN_INSTRUCTION\"'\n  home: user\n"
        .to_owned()
}

/// The policy.
pub(super) fn policy(project: &Project) -> String {
    let list = |items: &[&str]| items.iter().map(|item| scalar(item)).collect::<Vec<_>>().join(", ");
    format!(
        "\
# How changes of this project are reviewed. It says what differs from the policy `default`, and keeps everything else:
# `checkrein policy show default` prints that, `checkrein policy check` checks this file.
version: 1
extends: default

workspace:
  # Changes of these files always ask a person, besides those that `default` names.
  protect: [checkrein.yaml, {POLICY_FILE}]

verifiers:
  # The reviewer runs this in a fresh copy of what the agent left; what the agent says about its tests does not count.
  tests:
    run: [{run}]
    timeout: 20m
    network: none
    # Folders that the tests need and that are not part of a change.
    carry: [{carry}]
    # The tests as they were before: weakening them does not help.
    from_base: [{tests}]
    covers: [\"**\"]
",
        run = list(&project.test),
        carry = list(&project.carry),
        tests = list(&project.tests),
    )
}

/// A text as YAML reads it back, whatever is in it.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let odd_start = text.starts_with(|c: char| !c.is_ascii_alphabetic());
    let word = matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if !text.is_empty() && !odd_start && !word && text.chars().all(plain) {
        return text.to_owned();
    }
    // JSON's strings are YAML's double-quoted ones.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_a_meaning_in_yaml_are_quoted() {
        assert_eq!(scalar("cargo"), "cargo");
        for odd in ["", "-q", "true", "a: b", "**/x", "it's \"so\"", "12", "#x"] {
            assert!(scalar(odd).starts_with('"'), "{odd}");
        }
    }
}
