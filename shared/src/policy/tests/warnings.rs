//! Warnings: found where they are due, and only there.

use super::compiled;
use crate::policy::{AgentKind, Warning, lint};

fn warnings(text: &str, agent: AgentKind) -> Vec<String> {
    lint(&compiled(text), agent).iter().map(Warning::to_string).collect()
}

#[track_caller]
fn warns(text: &str, expected: &str) {
    let found = warnings(&format!("version: 1\n{text}\n"), AgentKind::Any);
    assert!(found.iter().any(|w| w.starts_with("policy.yaml:") && w.contains(expected)), "{text}\n{found:#?}");
}

#[test]
fn a_rule_that_can_never_match_is_named_with_what_hides_it() {
    warns(
        "rules:\n- {id: all, on: [round, failed], when: 'true', action: block}\n- {id: late, on: [failed], when: 'attempt.n > 1', action: block}",
        "`late` can never match: `all` at policy.yaml:3",
    );
    warns(
        "rules:\n- {id: a, on: [round], when: 'round.n > 1', action: block}\n- {id: b, on: [round], when: 'round.n > 1', action: block}",
        "`b` can never match: `a`",
    );
    warns("rules: [{id: never, on: [round], when: 'false', action: block}]", "its condition is `false`");
    let partly = "version: 1\nrules:\n- {id: all, on: [round], when: 'true', action: block}\n- {id: b, on: [round, late], when: 'true', action: block}\n";
    assert_eq!(warnings(partly, AgentKind::Any), Vec::<String>::new(), "`b` still decides about `late`");
}

#[test]
fn rules_that_do_less_than_they_seem_are_named() {
    warns("rules: [{id: wave, on: [round], when: 'changeset.lines < 5', action: continue}]", "it waives nothing");
    warns("rules: [{id: f, floor: true, on: [late], when: 'true', action: warn}]", "before any other rule is asked");
    warns(
        "rules: [{id: c, on: [round], when: \"call.name == 'x'\", action: block}]",
        "only `effect_unknown` is about a call",
    );
    warns("rules: [{id: l, on: [late], when: 'true', action: block, level: owner}]", "never escalates");
    warns("rules: [{id: r, on: [late], when: 'true', action: retry}]", "without end; give it a `limit`");
    warns("rules: [{id: r, on: [late], when: 'true', action: retry, limit: 2}]", "does not say what follows (`then`)");
}

#[test]
fn reviews_and_triggers_without_effect_are_named() {
    warns("triggers: {approval.after: {on: false}}", "leaves no checkpoint");
    warns("triggers: {spec.changed: {gate: true}}", "is a gate, but no review is on it");
    warns(
        "reviews: [{name: a, kind: model, on: [spec.changed], blocking: false}]\ntriggers: {spec.changed: {on: false}}",
        "which is off",
    );
    warns("reviews: [{name: a, kind: model, on: [spec.changed]}]", "is no gate: work goes on");
    warns("reviews: [{name: rules, count: 2}]", "the same deterministic answer");
    warns(
        "reviews: [{name: a, kind: model, on: [changeset.before_apply], independent: [vendor]}]",
        "independent of nobody",
    );
    let weak = warnings("version: 1\nchecks: {integrity: warn}\n", AgentKind::Any);
    assert!(weak[0].contains("`integrity` does not block"), "{weak:?}");
}

#[test]
fn triggers_that_a_command_cannot_fire_are_named_for_commands_only() {
    let text = "version: 1\nreviews: [{name: rules, on: [changeset.before_apply, context.health_low]}]\ntriggers: {context.health_low: {gate: true}}\n";
    assert_eq!(warnings(text, AgentKind::Any), Vec::<String>::new());
    let found = warnings(text, AgentKind::Command);
    assert!(found[0].contains("policy.yaml:3:12: warning: trigger `context.health_low` never fires"), "{found:?}");
}

#[test]
fn levels_without_end_are_named() {
    warns("escalation: {a: {to: [x], next: b}, b: {to: [y], next: a}}", "level `a` has no end: a -> b -> a");
    warns("escalation: {a: {to: [x], next: a}}", "level `a` has no end: a -> a");
    let fine = "version: 1\nescalation: {a: {to: [x], next: b}, b: {to: [y]}}\n";
    assert_eq!(warnings(fine, AgentKind::Any), Vec::<String>::new());
}
