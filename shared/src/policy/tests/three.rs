//! The three policies of `policies/tests`: a bank, a startup, a documentation
//! bot.

use std::path::{Path, PathBuf};

use super::approved_round;
use crate::policy::*;
use crate::records::{EffectClass, Trigger};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/tests").join(name)
}

#[track_caller]
fn policy(name: &str) -> CompiledPolicy {
    load_file(&path(name)).unwrap_or_else(|error| panic!("{error}")).compile().unwrap()
}

fn call(name: &str, argv: &[&str]) -> Facts {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    Facts { call: Some(CallFacts { name: name.to_owned(), argv, ..CallFacts::default() }), ..Facts::default() }
}

fn names(policy: &CompiledPolicy, facts: &Facts) -> Vec<String> {
    let required = required_reviews(policy, Trigger::ChangesetBeforeApply, facts);
    required.into_iter().map(|required| required.review.name).collect()
}

#[test]
fn their_own_examples_pass() {
    for name in ["bank.yaml", "startup.yaml", "docs-bot.yaml"] {
        let results = run_policy_tests(&policy(name));
        assert!(results.len() >= 3);
        for result in results {
            assert_eq!(result.failure, None, "{name}: {}", result.name);
        }
    }
}

#[test]
fn the_bank_moves_money_by_people_and_runs_odd_commands_behind_a_gate() {
    let bank = policy("bank.yaml");
    let payment = tool_rule(&bank, &call("mcp:payments/transfer", &[]));
    assert_eq!((payment.effect, payment.mode), (EffectClass::Irreversible, ToolMode::Human));
    assert_eq!(tool_rule(&bank, &call("builtin:run_command", &["mvn", "test"])).mode, ToolMode::Allow);
    assert_eq!(tool_rule(&bank, &call("builtin:run_command", &["curl", "x"])).mode, ToolMode::Gate);
    assert_eq!(tool_rule(&bank, &call("builtin:run_command", &[])).mode, ToolMode::Human, "no command at all");
}

#[test]
fn the_bank_asks_its_board_about_the_ledger() {
    let bank = policy("bank.yaml");
    let mut facts = Facts::default();
    facts.changeset.paths = vec!["web/index.html".to_owned()];
    assert_eq!(names(&bank, &facts), ["rules", "security"]);
    facts.changeset.paths.push("ledger/post.java".to_owned());
    assert_eq!(names(&bank, &facts), ["rules", "security", "board"]);
    let resolved = bank.policy();
    let security = resolved.review("security").unwrap();
    assert_eq!((security.count, security.quorum.of(security.count), security.veto), (2, 2, true));
    assert_eq!(resolved.review("rules").unwrap().verifiers, ["unit"]);
    assert_eq!(resolved.default_level, "cab");
    assert_eq!(resolved.escalation["cab"].approvers, 2);
    assert!(resolved.constraints[0].text.contains("ledger/"));
    assert_eq!(resolved.workspace.confinement, Confinement::Required);
    assert_eq!(resolved.verifiers["unit"].network, Network::None);
}

#[test]
fn the_startup_asks_its_bot_about_large_changes_and_a_sample() {
    let startup = policy("startup.yaml");
    let mut facts = Facts::default();
    facts.changeset.lines = 51;
    assert_eq!(names(&startup, &facts), ["rules", "bot"]);
    facts.changeset.lines = 5;
    let asked = (0..1_000)
        .filter(|n| {
            facts.checkpoint.hash = format!("sha256:{n}");
            names(&startup, &facts).len() == 2
        })
        .count();
    assert!((60..=140).contains(&asked), "{asked} of 1000");
    let resolved = startup.policy();
    assert_eq!(resolved.budgets.task.cost_micros, Some(5_000_000));
    assert_eq!(resolved.budgets.task.wall.unwrap().to_string(), "2h");
    assert_eq!(resolved.budgets.task.turns, load_named("default").unwrap().budgets.task.turns);
}

#[test]
fn the_documentation_bot_runs_nothing_and_leaves_the_rest_alone() {
    let bot = policy("docs-bot.yaml");
    assert_eq!(tool_rule(&bot, &call("builtin:run_command", &["ls"])).mode, ToolMode::Deny);
    assert_eq!(tool_rule(&bot, &call("builtin:write_file", &[])).mode, ToolMode::Allow);
    let mut facts = approved_round();
    facts.changeset.paths = vec!["docs/a.md".to_owned(), "README.md".to_owned()];
    facts.verifiers.insert("links".to_owned(), VerifierFacts { ok: true, ..VerifierFacts::default() });
    let outcome = evaluate_rules(&bot, RuleEvent::Round, &facts, &Fired::new());
    assert_eq!((outcome.rule.as_str(), outcome.action), ("outside", Action::Block));
    facts.changeset.paths.pop();
    let outcome = evaluate_rules(&bot, RuleEvent::Round, &facts, &Fired::new());
    assert_eq!((outcome.rule.as_str(), outcome.action), ("ok", Action::Continue));
    assert_eq!(bot.policy().inherit.base, InheritBase::Relevant);
    assert!(bot.policy().verifiers["links"].argv() == ["lychee", "docs"]);
}
