//! `extends`: what a child keeps, changes and can't undo.

use std::path::{Path, PathBuf};

use super::{approved_round, compiled, load, refused};
use crate::policy::*;
use crate::records::{EffectClass, ReviewKind, Trigger};

/// A folder of files that goes away with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[track_caller]
    fn refused(&self, name: &str) -> String {
        load_file(&self.path(name)).expect_err("this policy should be refused").to_string()
    }
}

#[test]
fn a_partial_file_keeps_everything_that_it_does_not_say() {
    let default = load_named("default").unwrap();
    let partial = load("version: 1\nretention: {done: 1d}\n").unwrap();
    let expected = ResolvedPolicy {
        name: partial.name.clone(),
        sources: partial.sources.clone(),
        retention: Retention { done: "1d".parse().unwrap() },
        tests: Vec::new(),
        ..default
    };
    assert_eq!(partial, expected);
}

#[test]
fn reviews_verifiers_and_levels_merge_by_name_and_key() {
    let policy = load(
        "version: 1\nextends: strict\nverifiers: {unit: {run: [make, test]}}\nreviews: [{name: rules, timeout: 5m}]\n\
         escalation: {owner: {deadline: 1h}}\nchecks: {size: {lines: 10}}\n",
    )
    .unwrap();
    let strict = load_named("strict").unwrap();
    let (old, new) = (strict.review("rules").unwrap(), policy.review("rules").unwrap());
    assert_eq!(new.timeout.to_string(), "5m");
    assert_eq!((new.kind, &new.on, &new.must_read), (old.kind, &old.on, &old.must_read));
    assert_eq!(new.verifiers, ["unit"], "a rules review runs every verifier unless it names some");
    assert_eq!(policy.escalation["owner"].deadline.to_string(), "1h");
    assert_eq!(policy.escalation["owner"].exclude, strict.escalation["owner"].exclude);
    assert_eq!(policy.checks.size, SizeLimit { files: 50, lines: 10 });
    assert_eq!(policy.checks.mode(CheckName::Size), CheckMode::Block);
    assert_eq!((new.origin.file.as_str(), new.origin.line), ("policy.yaml", 4));
}

#[test]
fn rules_stand_floors_first_then_the_childs_then_the_parents() {
    let policy = load(
        "version: 1\nrules:\n- {id: mine, on: [round], when: 'round.n > 9', action: block}\n\
         - {id: ground, floor: true, on: [round], when: 'round.n > 8', action: block}\n\
         - {id: approved, on: [round], when: 'round.complete && round.n > 1', action: continue}\n",
    )
    .unwrap();
    let ids: Vec<&str> = policy.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(&ids[..5], ["protected", "ground", "mine", "approved", "rejected"]);
    assert_eq!(ids.iter().filter(|id| **id == "approved").count(), 1, "a namesake takes the parent's place");
}

#[test]
fn a_child_cannot_remove_or_replace_a_floor_rule() {
    let error = refused("version: 1\nrules:\n- {id: protected, on: [round], when: 'false', action: continue}\n");
    assert!(error.contains("policy.yaml:3:") && error.contains("floor rule of policies/default.yaml"), "{error}");
    let floor = "version: 1\nrules:\n- {id: mine, floor: true, on: [round], when: 'true', action: continue}\n";
    let mut facts = approved_round();
    facts.changeset.touched_protected = true;
    let outcome = evaluate_rules(&compiled(floor), RuleEvent::Round, &facts, &Fired::new());
    assert_eq!((outcome.rule.as_str(), outcome.action), ("protected", Action::Escalate));
}

fn call(name: &str, effect: &str) -> Facts {
    let call =
        CallFacts { name: name.to_owned(), effect: effect.to_owned(), argv: vec!["ls".into()], ..CallFacts::default() };
    Facts { call: Some(call), ..Facts::default() }
}

#[test]
fn a_child_raises_the_effect_and_mode_of_a_tool_and_never_lowers_them() {
    let lower = compiled("version: 1\ntools: [{match: '*', effect: read_only, mode: allow}]\n");
    let decision = tool_rule(&lower, &call("builtin:run_command", "read_only"));
    assert_eq!((decision.effect, decision.mode), (EffectClass::Effectful, ToolMode::Allow));
    let raise = compiled("version: 1\ntools: [{match: 'builtin:read_*', effect: effectful, mode: gate}]\n");
    let decision = tool_rule(&raise, &call("builtin:read_file", "read_only"));
    assert_eq!((decision.effect, decision.mode), (EffectClass::Effectful, ToolMode::Gate));
    assert_eq!(decision.origins.len(), 2, "both entries had a say");
    let strict =
        compiled("version: 1\nextends: strict\ntools: [{match: 'mcp:pay/*', effect: irreversible, mode: allow}]\n");
    let decision = tool_rule(&strict, &call("mcp:pay/send", "read_only"));
    assert_eq!((decision.effect, decision.mode), (EffectClass::Irreversible, ToolMode::Human));
}

#[test]
fn chains_of_files_are_followed_and_their_places_do_not_depend_on_the_folder() {
    let files = [
        (
            "team/policy.yaml",
            "version: 1\nextends: ../base/base.yaml\nreviews: [{name: extra, kind: model, on: [changeset.before_apply]}]\n",
        ),
        ("base/base.yaml", "version: 1\nextends: strict\nconstraints: [{id: c, version: 1, file: c.md}]\n"),
        ("base/c.md", "keep it simple\n"),
    ];
    let (one, two) = (Folder::new(&files), Folder::new(&files));
    let policy = load_file(&one.path("team/policy.yaml")).unwrap();
    assert_eq!(policy.name, "policy.yaml");
    let sources: Vec<&str> = policy.sources.iter().map(|source| source.file.as_str()).collect();
    assert_eq!(sources, ["policy.yaml", "../base/base.yaml", "policies/strict.yaml", "policies/default.yaml"]);
    assert_eq!(policy.constraints[0].text, "keep it simple\n");
    assert_eq!(policy.constraints[0].hash, crate::digest::Digest::of("keep it simple\n"));
    assert_eq!(policy.review("extra").unwrap().kind, ReviewKind::Model);
    assert_eq!(policy.digest(), load_file(&two.path("team/policy.yaml")).unwrap().digest());
}

#[test]
fn what_a_file_extends_must_exist_and_end() {
    let folder = Folder::new(&[
        ("a.yaml", "version: 1\nextends: b.yaml\n"),
        ("b.yaml", "version: 1\nextends: ./a.yaml\n"),
        ("self.yaml", "version: 1\nextends: self.yaml\n"),
        ("gone.yaml", "version: 1\nextends: nowhere.yaml\n"),
        ("typo.yaml", "version: 1\nextends: strickt\n"),
        ("child.yaml", "version: 1\nextends: broken.yaml\n"),
        ("broken.yaml", "version: 1\nruls: []\n"),
        ("folder.yaml/x", ""),
        ("deep0.yaml", "version: 1\n"),
    ]);
    assert!(folder.refused("a.yaml").contains("b.yaml:2:10: the policy extends itself"));
    assert!(folder.refused("self.yaml").contains("self.yaml:2:10: the policy extends itself"));
    assert!(folder.refused("gone.yaml").contains("gone.yaml:2:10: `"));
    assert!(folder.refused("typo.yaml").contains("did you mean `strict`?"));
    assert!(folder.refused("child.yaml").contains("broken.yaml:2:1: unknown key `ruls`"));
    assert!(folder.refused("nowhere.yaml").contains("can't be read"));
    assert!(folder.refused("folder.yaml").contains("not a regular file"));
    for depth in 1..9 {
        let text = format!("version: 1\nextends: deep{}.yaml\n", depth - 1);
        std::fs::write(folder.path(&format!("deep{depth}.yaml")), text).unwrap();
    }
    assert!(load_file(&folder.path("deep6.yaml")).is_ok(), "seven files and `default`");
    assert!(folder.refused("deep8.yaml").contains("more than 8 files"));
    assert!(load_named("nothing").is_err());
    assert!(load("version: 1\nextends: other.yaml\n").is_err(), "a text has no folder");
}

#[test]
fn constraints_are_inlined_and_only_ever_raised() {
    let folder = Folder::new(&[
        ("base.yaml", "version: 1\nconstraints: [{id: c, version: 2, text: old}]\n"),
        ("raise.yaml", "version: 1\nextends: base.yaml\nconstraints: [{id: c, version: 3, text: new}]\n"),
        ("lower.yaml", "version: 1\nextends: base.yaml\nconstraints: [{id: c, version: 2, text: weak}]\n"),
        ("outside.yaml", "version: 1\nconstraints: [{id: c, version: 1, file: ../x.md}]\n"),
        ("missing.yaml", "version: 1\nconstraints: [{id: c, version: 1, file: x.md}]\n"),
        ("both.yaml", "version: 1\nconstraints: [{id: c, version: 1, file: x.md, text: y}]\n"),
        ("none.yaml", "version: 1\nconstraints: [{id: c, version: 1}]\n"),
    ]);
    assert_eq!(load_file(&folder.path("raise.yaml")).unwrap().constraints[0].text, "new");
    assert!(folder.refused("lower.yaml").contains("has version 2 already"));
    assert!(folder.refused("outside.yaml").contains("below the policy's folder"));
    assert!(folder.refused("missing.yaml").contains("can't be read"));
    assert!(folder.refused("both.yaml").contains("both `text` and `file`"));
    assert!(folder.refused("none.yaml").contains("neither"));
}

#[test]
fn references_must_lead_somewhere() {
    for (text, expected) in [
        ("rules: [{id: a, on: [round], when: 'true', action: escalate, level: ownr}]", "did you mean `owner`?"),
        ("reviews: [{name: rules, verifiers: [unit]}]", "there is no verifier `unit`"),
        ("escalation: {a: {to: [x], next: b}}", "there is no level `b`"),
        ("escalation: {a: {deadline: 1h}}", "asks nobody"),
        ("escalation: {a: {to: [x], approvers: 0}}", "at least one approver"),
        ("escalation: {a: {to: [x], hours: 'Mon-Fri 8-18 Europe/Zurich'}}", "not office hours"),
        ("reviews: [{name: h, kind: human, on: [approval.after]}]", "needs a `level`"),
        ("reviews: [{name: c, kind: command, on: [approval.after]}]", "needs a `command`"),
        ("reviews: [{name: c, on: [approval.after]}]", "has no `kind`"),
        ("reviews: [{name: c, kind: model}]", "has no `on`"),
        ("reviews: [{name: c, kind: model, on: []}]", "on no trigger"),
        ("reviews: [{name: c, kind: model, on: [approval.after], level: owner}]", "`level` means nothing"),
        ("reviews: [{name: c, kind: model, on: [approval.after], count: 2, quorum: 3}]", "can't give 3 approvals"),
        ("reviews: [{name: rules}, {name: rules}]", "two reviews `rules`"),
        ("verifiers: {a: {timeout: 1m}}", "has no `run`"),
        ("verifiers: {a b: {run: [x]}}", "can't name a verifier"),
        ("verifiers: {a: {run: [x], carry: [../m2]}}", "not a path below the workspace"),
        ("verifiers: {a: {run: [x], covers: ['[']}}", "is not a glob"),
        ("tools: [{match: '', effect: read_only, mode: allow}]", "the glob is empty"),
        ("redaction: {extra: [{id: a, regex: '('}]}", "redaction pattern `a`"),
        ("redaction: {extra: [{id: a, regex: 'x*'}]}", "matches nothing at all"),
        ("redaction: {packs: [everything]}", "unknown value `everything`"),
        ("triggers: {changeset.before_apply: {gate: false}}", "guards the target"),
        ("triggers: {changeset.before_apply: {when: 'changeset.files > 0'}}", "guards the target"),
        ("triggers: {approval.after: {at: [50]}}", "has no thresholds"),
        ("triggers: {budget.threshold: {at: [50, 50]}}", "must ascend"),
        ("rules: [{id: a, on: [], when: 'true', action: block}]", "on no event"),
        ("rules: [{id: a, on: [round], when: 'true', action: retry, limit: 0}]", "a limit of 0"),
        ("rules: [{id: a, on: [round], when: 'true', action: block, with: fresh}]", "`with` belongs to `retry`"),
        ("rules: [{id: a, on: [round], when: 'true', action: retry, with: 'a b'}]", "neither `same`"),
        ("rules: [{id: a, on: [round], when: 'true', action: block, limit: 1, then: continue}]", "weaker"),
        ("rules: [{id: a, on: [round], when: 'true', action: retry, limit: 2, then: retry}]", "no meaning"),
        ("rules: [{id: a, on: [round], when: 'true', action: retry, then: block}]", "a `then` but no `limit`"),
        ("rules: [{id: no-match, on: [round], when: 'true', action: block}]", "stands in for a rule"),
        ("checks: {secrets: {files: 3}}", "has no `files`"),
    ] {
        let error = refused(&format!("version: 1\n{text}\n"));
        assert!(error.contains(expected), "{text}\n{error}");
        assert!(error.starts_with("policy.yaml:"), "{error}");
    }
}

#[test]
fn a_trigger_keeps_what_the_child_does_not_say() {
    let policy = load("version: 1\ntriggers: {budget.threshold: {gate: true}, max_interval: 5m}\n").unwrap();
    let rule = &policy.triggers.by_name[&Trigger::BudgetThreshold];
    assert_eq!((rule.on, rule.gate, rule.at.as_slice()), (true, true, &[50, 80, 100][..]));
    assert_eq!(policy.triggers.max_interval.to_string(), "5m");
    assert_eq!(policy.triggers.min_interval.to_string(), "10s");
}

#[test]
fn built_in_names_are_not_looked_up_as_files() {
    let folder = Folder::new(&[("strict", "version: 1\n"), ("a.yaml", "version: 1\nextends: strict\n")]);
    let policy = load_file(Path::new(&folder.path("a.yaml"))).unwrap();
    assert_eq!(policy.sources[1].file, "policies/strict.yaml");
}
