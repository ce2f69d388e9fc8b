//! Rules, reviews, triggers and tools: what is decided, and that whatever goes
//! wrong ends on the strict side.

use super::{approved_round, compiled};
use crate::policy::*;
use crate::records::{EffectClass, Trigger};

const NOTHING: &Fired = &Fired::new();

#[test]
fn the_first_rule_that_matches_decides_and_the_trace_says_why() {
    let policy = load_named("default").unwrap().compile().unwrap();
    let outcome = evaluate_rules(&policy, RuleEvent::Round, &approved_round(), NOTHING);
    assert_eq!(
        (outcome.rule.as_str(), outcome.action, outcome.reason),
        ("approved", Action::Continue, Reason::Matched)
    );
    let origin = outcome.origin.unwrap();
    assert_eq!(origin.file, "policies/default.yaml");
    let text = built_in("default").unwrap();
    let line = text.lines().nth(usize::try_from(origin.line).unwrap() - 1).unwrap();
    assert!(line.contains("id: approved"), "{line}");
    assert_eq!(outcome.values, [Seen { name: "round.complete".into(), value: "true".into() }]);
    let tried: Vec<(&str, Option<bool>)> = outcome.trace.iter().map(|t| (t.rule.as_str(), t.matched)).collect();
    assert_eq!(
        tried,
        [
            ("protected", Some(false)),
            ("rejected", Some(false)),
            ("unclear", Some(false)),
            ("critical", Some(false)),
            ("approved", Some(true))
        ]
    );
}

#[test]
fn nothing_matched_escalates_to_the_first_level() {
    let policy = compiled("version: 1\nescalation:\n  zoe: {to: [zoe]}\n  adam: {to: [adam]}\n");
    let outcome = evaluate_rules(&policy, RuleEvent::Round, &Facts::default(), NOTHING);
    assert_eq!((outcome.rule.as_str(), outcome.action, outcome.reason), (NO_MATCH, Action::Escalate, Reason::NoMatch));
    assert_eq!((outcome.level.as_str(), outcome.origin), ("zoe", None));
}

#[test]
fn a_condition_that_fails_escalates_and_no_later_rule_is_asked() {
    let policy = compiled(
        "version: 1\nverifiers: {unit: {run: [x]}}\nrules:\n- {id: a, on: [round], when: verifiers.unit.ok, action: continue}\n\
         - {id: b, on: [round], when: 'true', action: continue}\n",
    );
    let outcome = evaluate_rules(&policy, RuleEvent::Round, &approved_round(), NOTHING);
    assert_eq!((outcome.rule.as_str(), outcome.action), (EXPRESSION_ERROR, Action::Escalate));
    assert_eq!(outcome.origin.as_ref().unwrap().line, 4);
    assert!(outcome.message.contains("rule `a` failed: there is no `unit` here"), "{}", outcome.message);
    assert_eq!(outcome.trace.last().unwrap().matched, None);
}

#[test]
fn a_rule_that_goes_on_waives_no_review() {
    let policy =
        compiled("version: 1\nrules:\n- {id: wave, on: [round, timeout, late], when: 'true', action: continue}\n");
    for on in [RuleEvent::Round, RuleEvent::Timeout] {
        let outcome = evaluate_rules(&policy, on, &Facts::default(), NOTHING);
        assert_eq!(
            (outcome.rule.as_str(), outcome.action, outcome.reason),
            ("wave", Action::Escalate, Reason::Unapproved)
        );
    }
    assert_eq!(evaluate_rules(&policy, RuleEvent::Round, &approved_round(), NOTHING).action, Action::Continue);
    assert_eq!(evaluate_rules(&policy, RuleEvent::Late, &Facts::default(), NOTHING).action, Action::Continue);
}

#[test]
fn a_review_loop_that_does_not_converge_ends_with_a_person() {
    let policy = load_named("default").unwrap().compile().unwrap();
    let mut facts = Facts::default();
    facts.round.rejections = 1;
    let mut fired = Fired::new();
    let actions: Vec<Action> = (1..=27)
        .map(|round| {
            facts.round.n = round;
            let outcome = evaluate_rules(&policy, RuleEvent::Round, &facts, &fired);
            *fired.entry(outcome.rule).or_default() += 1;
            outcome.action
        })
        .collect();
    assert!(actions[..4].iter().all(|action| *action == Action::Retry));
    assert!(actions[4..].iter().all(|action| *action == Action::Escalate));
}

#[test]
fn the_same_failure_again_and_again_is_one_question() {
    let policy = load_named("default").unwrap().compile().unwrap();
    let mut facts = Facts::default();
    for same in 1..=8 {
        facts.attempt = AttemptFacts { n: same, failures: same, same_error: same };
        let outcome = evaluate_rules(&policy, RuleEvent::Failed, &facts, NOTHING);
        let expected = if same < 3 { ("failed", Action::Retry) } else { ("same-error", Action::Escalate) };
        assert_eq!((outcome.rule.as_str(), outcome.action), expected);
    }
}

#[test]
fn every_event_is_decided_by_the_shipped_policies_and_none_lets_an_unreviewed_gate_pass() {
    for name in BUILT_IN {
        let policy = load_named(name).unwrap().compile().unwrap();
        for on in RuleEvent::ALL {
            let outcome = evaluate_rules(&policy, *on, &Facts::default(), NOTHING);
            if matches!(on, RuleEvent::Round | RuleEvent::Timeout | RuleEvent::EffectUnknown | RuleEvent::Plan) {
                assert!(!matches!(outcome.action, Action::Continue | Action::Warn), "{name}: {on}");
            } else {
                assert_ne!(outcome.rule, NO_MATCH, "{name}: {on}");
            }
        }
    }
}

#[test]
fn reviews_are_asked_for_where_their_condition_holds_or_fails() {
    let policy = compiled(
        "version: 1\nreviews:\n- {name: big, kind: model, on: [changeset.before_apply], when: 'changeset.lines > 50', count: 3, quorum: 2}\n\
         - {name: odd, kind: model, on: [changeset.before_apply], when: '1 / changeset.files > 0'}\n\
         - {name: other, kind: model, on: [approval.after]}\n",
    );
    let mut facts = Facts::default();
    let names = |facts: &Facts| -> Vec<String> {
        let required = required_reviews(&policy, Trigger::ChangesetBeforeApply, facts);
        required.iter().map(|r| format!("{}:{}:{}", r.review.name, r.quorum, r.condition_failed)).collect()
    };
    assert_eq!(names(&facts), ["rules:1:false", "odd:1:true"]);
    facts.changeset.lines = 51;
    facts.changeset.files = 2;
    assert_eq!(names(&facts), ["rules:1:false", "big:2:false"]);
}

#[test]
fn a_gate_where_nothing_really_looks_asks_a_person() {
    let cover = |text: &str, step_verifiers: usize| {
        let required = required_reviews(&compiled(text), Trigger::ChangesetBeforeApply, &Facts::default());
        gate_cover(&required, step_verifiers)
    };
    let bare = cover("version: 1\n", 0);
    assert_eq!(bare, GateCover { blocking: 1, judging: 0, verifiers: 0 });
    assert!(bare.asks_person());
    assert!(!cover("version: 1\n", 1).asks_person(), "a step of the task names a verifier");
    assert!(!cover("version: 1\nverifiers: {unit: {run: [x]}}\n", 0).asks_person());
    let model = "version: 1\nreviews: [{name: m, kind: model, on: [changeset.before_apply], blocking: BLOCKING}]\n";
    assert!(!cover(&model.replace("BLOCKING", "true"), 0).asks_person());
    assert!(cover(&model.replace("BLOCKING", "false"), 0).asks_person());
    let witness = "version: 1\nverifiers: {unit: {run: [x]}}\nreviews: [{name: rules, blocking: false}]\n";
    assert!(cover(witness, 1).asks_person(), "a review that holds nothing up guards nothing");
}

#[test]
fn triggers_fire_as_the_policy_says_and_on_error() {
    let policy = compiled(
        "version: 1\ntriggers:\n  approval.after: {on: false, gate: true}\n  spec.changed: {gate: true, when: 'changeset.files > 2'}\n\
         \x20 test.regressed: {gate: true, when: '1 / tests.regressed > 0'}\n",
    );
    let mut facts = Facts::default();
    let fires = |trigger, facts: &Facts| {
        let decision = trigger_fires(&policy, trigger, facts);
        (decision.on, decision.gate)
    };
    assert_eq!(fires(Trigger::ChangesetBeforeApply, &facts), (true, true));
    assert_eq!(fires(Trigger::ChangesetAfterApply, &facts), (true, false));
    assert_eq!(fires(Trigger::ApprovalAfter, &facts), (false, false));
    assert_eq!(fires(Trigger::SpecChanged, &facts), (false, false));
    assert_eq!(fires(Trigger::TestRegressed, &facts), (true, true), "a condition that fails holds");
    facts.changeset.files = 3;
    assert_eq!(fires(Trigger::SpecChanged, &facts), (true, true));
}

#[test]
fn a_threshold_is_crossed_once() {
    let policy = load_named("default").unwrap().compile().unwrap();
    let crossed = |before, now| threshold_crossed(&policy, Trigger::BudgetThreshold, before, now);
    assert_eq!(crossed(0, 49), None);
    assert_eq!(crossed(49, 50), Some(50));
    assert_eq!(crossed(50, 51), None);
    assert_eq!(crossed(10, 90), Some(80));
    assert_eq!(crossed(99, 180), Some(100));
    assert_eq!(crossed(90, 10), None);
}

fn decide(policy: &CompiledPolicy, name: &str, argv: &[&str], effect: &str) -> ToolDecision {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let call = CallFacts { name: name.to_owned(), argv, effect: effect.to_owned(), ..CallFacts::default() };
    tool_rule(policy, &Facts { call: Some(call), ..Facts::default() })
}

#[test]
fn what_no_entry_lists_is_effectful_and_gated_whatever_its_server_says() {
    let policy = load_named("default").unwrap().compile().unwrap();
    let unlisted = decide(&policy, "mcp:files/read", &[], "read_only");
    assert_eq!((unlisted.effect, unlisted.mode), (EffectClass::Effectful, ToolMode::Gate));
    assert!(unlisted.origins.is_empty());
    let hinted = decide(&policy, "builtin:read_file", &[], "irreversible");
    assert_eq!((hinted.effect, hinted.mode), (EffectClass::Irreversible, ToolMode::Allow));
    let listed = decide(&policy, "builtin:read_file", &[], "read_only");
    assert_eq!((listed.effect, listed.mode), (EffectClass::ReadOnly, ToolMode::Allow));
}

fn decide_step(policy: &CompiledPolicy, effect: &str) -> (EffectClass, ToolMode) {
    let call = CallFacts { name: "step:deploy".into(), effect: effect.to_owned(), ..CallFacts::default() };
    let decision = step_rule(policy, &Facts { call: Some(call), ..Facts::default() });
    (decision.effect, decision.mode)
}

#[test]
fn the_command_of_a_step_is_treated_as_its_author_says_or_stricter() {
    use {EffectClass as E, ToolMode as M};
    let default = load_named("default").unwrap().compile().unwrap();
    assert!(!lists_tool(&default, "step:deploy"));
    assert_eq!(decide_step(&default, "read_only"), (E::ReadOnly, M::Allow));
    assert_eq!(decide_step(&default, "effectful"), (E::Effectful, M::Allow));
    assert_eq!(decide_step(&default, "irreversible"), (E::Irreversible, M::Gate));
    let strict = load_named("strict").unwrap().compile().unwrap();
    assert!(lists_tool(&strict, "step:deploy"));
    assert_eq!(decide_step(&strict, "effectful"), (E::Effectful, M::Allow), "its entry is about something else");
    assert_eq!(decide_step(&strict, "irreversible"), (E::Irreversible, M::Human));
    let raised = compiled("version: 1\ntools: [{match: 'step:dep*', effect: effectful, mode: human}]\n");
    assert_eq!(decide_step(&raised, "read_only"), (E::Effectful, M::Human));
    assert_eq!(decide_step(&raised, "irreversible"), (E::Irreversible, M::Human), "an entry never lowers anything");
    let broken = compiled(
        "version: 1\ntools: [{match: 'step:*', effect: effectful, mode: allow, when: \"call.argv[0] == 'x'\"}]\n",
    );
    assert_eq!(decide_step(&broken, "read_only").1, M::Human, "a condition that fails allows nothing");
    assert_eq!(step_rule(&default, &Facts::default()).mode, M::Human);
}

#[test]
fn a_call_that_cannot_be_decided_about_waits_for_a_person() {
    let policy = compiled(
        "version: 1\ntools: [{match: 'builtin:run_command', effect: effectful, mode: gate, when: \"call.argv[0] == 'git'\"}]\n",
    );
    let failed = decide(&policy, "builtin:run_command", &[], "read_only");
    assert_eq!(failed.mode, ToolMode::Human);
    assert!(failed.error.unwrap().contains("policy.yaml:2"));
    assert_eq!(decide(&policy, "builtin:run_command", &["git"], "read_only").mode, ToolMode::Gate);
    assert_eq!(decide(&policy, "builtin:run_command", &["ls"], "read_only").mode, ToolMode::Allow);
    assert_eq!(decide(&policy, "builtin:read_file", &[], "harmless").mode, ToolMode::Human);
    assert_eq!(tool_rule(&policy, &Facts::default()).mode, ToolMode::Human);
}
