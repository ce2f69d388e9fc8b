//! The policies that are shipped: sound, without warnings, and as they say.

use crate::policy::*;
use crate::records::Trigger;

#[test]
fn shipped_policies_have_no_warnings_and_pass_their_own_examples() {
    for name in BUILT_IN {
        let policy = load_named(name).unwrap_or_else(|error| panic!("{error}")).compile().unwrap();
        let warnings: Vec<String> = lint(&policy, AgentKind::Any).iter().map(Warning::to_string).collect();
        assert!(warnings.is_empty(), "{warnings:#?}");
        let results = run_policy_tests(&policy);
        assert!(!results.is_empty());
        for result in results {
            assert_eq!(result.failure, None, "{name}: {}", result.name);
        }
    }
}

#[test]
fn the_default_policy_says_something_about_every_trigger_and_check() {
    let text = built_in("default").unwrap();
    for trigger in Trigger::ALL {
        assert!(text.contains(&format!("  {}:", trigger.as_str())), "{}", trigger.as_str());
    }
    for check in CheckName::ALL {
        assert!(text.contains(&format!("  {check}:")), "{check}");
    }
}

#[test]
fn strict_is_at_least_as_strict_as_default() {
    let (default, strict) = (load_named("default").unwrap(), load_named("strict").unwrap());
    assert_eq!(strict.workspace.confinement, Confinement::Required);
    for check in CheckName::ALL {
        assert!(strict.checks.mode(*check) >= default.checks.mode(*check), "{check}");
    }
    for trigger in Trigger::ALL {
        let (old, new) = (&default.triggers.by_name[trigger], &strict.triggers.by_name[trigger]);
        assert!(new.on >= old.on && new.gate >= old.gate, "{}", trigger.as_str());
    }
    for floor in default.rules.iter().filter(|rule| rule.floor) {
        assert!(strict.rule(&floor.id).is_some_and(|rule| rule.floor));
    }
    assert!(strict.escalation["owner"].exclude.contains(&Excluded::Author));
}

#[test]
fn an_agent_that_edits_a_policy_or_the_build_pipeline_is_a_question_to_a_person() {
    for name in BUILT_IN {
        let policy = load_named(name).unwrap();
        for path in [".checkrein/policy.yaml", "team.policy.yaml", "checkrein.yaml", ".github/workflows/ci.yml"] {
            let matches =
                policy.workspace.protect.iter().any(|glob| super::super::globs::path(glob).unwrap().is_match(path));
            assert!(matches, "{name}: {path}");
        }
        let mut facts = super::approved_round();
        facts.changeset.touched_protected = true;
        let outcome = evaluate_rules(&policy.compile().unwrap(), RuleEvent::Round, &facts, &Fired::new());
        assert_eq!(outcome.action, Action::Escalate, "{name}");
    }
}

/// Every block of YAML in the documentation that is a whole policy.
fn documented() -> Vec<String> {
    let text = include_str!("../../../../docs/policy.md");
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with("version: 1")).map(str::to_owned).collect()
}

#[test]
fn the_policies_in_the_documentation_load_and_have_no_warnings() {
    let documented = documented();
    assert!(documented.len() >= 3);
    for text in documented {
        let policy = load_text("docs/policy.md", text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let warnings: Vec<String> =
            lint(&policy.compile().unwrap(), AgentKind::Any).iter().map(Warning::to_string).collect();
        assert!(warnings.is_empty(), "{text}\n{warnings:#?}");
    }
}
