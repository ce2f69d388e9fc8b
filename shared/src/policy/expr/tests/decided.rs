//! What conditions come to.

use super::*;

#[test]
fn conditions_are_decided() {
    let facts = facts();
    for (source, expected) in [
        ("round.n == 4 && round.rejections > 0", true),
        ("round.n - 5 < 0", true),
        ("-round.n == -4", true),
        ("7 / 2 == 3 && 7 % 4 == 3 && 2 * 3 == 6", true),
        ("step.risk >= 'R3' && step.risk < 'R4'", true),
        ("task.labels.team == 'core' && has(task.labels.team) && !has(task.labels.other)", true),
        ("'team' in task.labels && task.labels['team'].startsWith('co')", true),
        ("changeset.paths.exists(p, glob(p, 'docs/**'))", true),
        ("changeset.paths.all(p, glob(p, 'docs/**'))", false),
        ("changeset.paths.exists_one(p, p.endsWith('.rs'))", true),
        ("size(changeset.paths.filter(p, p.contains('/'))) == 2", true),
        ("changeset.paths.map(p, size(p)).exists(n, n == 9)", true),
        ("changeset.paths[1] == 'src/lib.rs'", true),
        ("'src/lib.rs' in changeset.paths", true),
        ("reviews.exists(r, r.name == 'bot' && r.verdict == 'rejected')", true),
        ("open_findings.all(f, f.severity != 'critical')", true),
        ("verifiers.unit.ok && !has(verifiers.links)", true),
        ("verifiers.all(v, verifiers[v].ok) && size(verifiers) == 1", true),
        ("!('links' in verifiers)", true),
        ("human_changed ? false : !drift.base", true),
        ("call.args.amount == 5 && call.args.to.name == 'x'", true),
        ("call.argv[0] in ['mvn', 'git']", true),
        ("task.labels.exists(l, l == 'team')", true),
        ("reviews.exists(r, open_findings.exists(f, f.id == 'f-1' && r.name == 'bot'))", true),
        ("'a' + 'b' == 'ab'", true),
        ("[1, 2] == [1, 2] && [1] != [2]", true),
    ] {
        assert_eq!(run(Scope::Rule, source, &facts), Ok(expected), "{source}");
    }
}

#[test]
fn an_error_at_run_time_is_never_absorbed() {
    let facts = facts();
    for source in [
        "call.argv[3] == 'x' || true",
        "verifiers.links.ok || true",
        "call.args.missing == 1 || true",
        "1 / (round.n - 4) == 1 || true",
        "call.args.ratio == 1 || true",
        "call.args.none == 'x' || true",
        "call.args.amount == '5' || true",
        "9223372036854775807 + round.n > 0 || true",
        "-(round.n - 4 - 9223372036854775807 - 1) > 0",
        "changeset.paths.exists(p, call.args[p] == 1) || true",
    ] {
        assert!(run(Scope::Rule, source, &facts).is_err(), "{source}");
    }
    let without_call = Facts { call: None, ..facts };
    let error = run(Scope::Rule, "call.name == 'x' || true", &without_call).unwrap_err();
    assert_eq!(error.message, "there is no `call` here");
}

#[test]
fn what_cannot_matter_is_not_evaluated() {
    let facts = facts();
    assert_eq!(run(Scope::Rule, "true || verifiers.links.ok", &facts), Ok(true));
    assert_eq!(run(Scope::Rule, "has(verifiers.links) && verifiers.links.ok", &facts), Ok(false));
    assert_eq!(run(Scope::Rule, "has(verifiers.links) ? verifiers.links.ok : true", &facts), Ok(true));
}

#[test]
fn a_condition_reports_the_facts_that_it_read() {
    let expression =
        compile(Scope::Rule, "round.n > 9 || changeset.paths.exists(p, glob(p, 'x')) || round.n > 8").unwrap();
    let mut seen = Vec::new();
    expression.evaluate(&World::new(&facts()), &mut seen).unwrap();
    let seen: Vec<String> = seen.iter().map(|s| format!("{}={}", s.name, s.value)).collect();
    assert_eq!(seen, ["round.n=4", "changeset.paths=[\"docs/a.md\", \"src/lib.rs\"]"]);
}

#[test]
fn a_sample_depends_on_the_checkpoint_alone_and_has_the_right_size() {
    let drawn = |percent: i64| {
        let expression = compile(Scope::Checkpoint, &format!("sample(checkpoint, {percent})")).unwrap();
        let draw = |n: usize| {
            let mut facts = Facts::default();
            facts.checkpoint.hash = format!("sha256:{n}");
            expression.evaluate(&World::new(&facts), &mut Vec::new()).unwrap()
        };
        assert!((0..50).all(|n| draw(n) == draw(n)));
        (0..2_000).filter(|n| draw(*n)).count()
    };
    assert_eq!(drawn(0), 0);
    assert_eq!(drawn(100), 2_000);
    assert!((120..=280).contains(&drawn(10)), "about one in ten");
    assert!(run(Scope::Checkpoint, "sample(checkpoint, 10)", &Facts::default()).is_err());
}
