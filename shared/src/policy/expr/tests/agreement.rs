//! Our evaluation and the one of the `cel` crate agree wherever both give an
//! answer. They differ on purpose where CEL hides an error.

use super::*;

/// What CEL itself makes of a condition.
fn cel_says(source: &str, facts: &Facts) -> Option<bool> {
    let program = cel::Env::stdlib().compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mut context = cel::Context::default();
    let serde_json::Value::Object(roots) = serde_json::to_value(facts).unwrap() else { unreachable!() };
    for (name, value) in roots {
        // CEL keeps unsigned numbers apart; here all are signed.
        context.add_variable_from_value(name, signed(value));
    }
    match program.execute(&context) {
        Ok(cel::Value::Bool(value)) => Some(value),
        _ => None,
    }
}

fn signed(value: serde_json::Value) -> cel::Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => cel::Value::Null,
        Json::Bool(value) => cel::Value::from(value),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| cel::Value::from(number.as_f64().unwrap()), cel::Value::from)
        }
        Json::String(text) => cel::Value::from(text),
        Json::Array(items) => cel::Value::from(items.into_iter().map(signed).collect::<Vec<_>>()),
        Json::Object(map) => {
            let map: std::collections::HashMap<String, cel::Value> =
                map.into_iter().map(|(k, v)| (k, signed(v))).collect();
            cel::Value::from(map)
        }
    }
}

#[test]
fn conditions_mean_what_they_mean_in_cel() {
    let facts = facts();
    for source in [
        "round.n == 4 && round.rejections > 0",
        "round.n - 5 < 0 || false",
        "-round.n == -4",
        "7 / 2 == 3 && 7 % 4 == 3 && -7 / 2 == -3 && -7 % 4 == -3",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 2 - 3 == 5",
        "step.risk >= 'R3' && step.risk < 'R4'",
        "has(task.labels.team) && !has(task.labels.other)",
        "'team' in task.labels && task.labels['team'].startsWith('co')",
        "changeset.paths.exists(p, p == 'docs/a.md') != changeset.paths.all(p, p == 'docs/a.md')",
        "changeset.paths.exists_one(p, p.endsWith('.rs'))",
        "size(changeset.paths.filter(p, p.contains('/'))) == 2",
        "changeset.paths.map(p, size(p)).exists(n, n == 9)",
        "changeset.paths[1] == 'src/lib.rs' && 'nothing' in changeset.paths",
        "reviews.exists(r, r.name == 'bot' && r.verdict == 'rejected')",
        "open_findings.all(f, f.severity != 'critical')",
        "verifiers.unit.ok && !has(verifiers.links)",
        "human_changed ? false : !drift.base",
        "true || false && false",
        "!true || true ? 1 == 1 : 1 == 2",
        "call.args.amount == 5 && call.args.to.name == 'x'",
        "'a' + 'b' == 'ab' && size('é') == 1",
        "[1, 2] == [1, 2] && [1] != [2] && !(3 in [1, 2])",
        "'a' < 'b' && 'B' < 'a' && 'ä' > 'z'",
    ] {
        assert_eq!(run(Scope::Rule, source, &facts).ok(), cel_says(source, &facts), "{source}");
    }
}

#[test]
fn what_cel_hides_is_an_error_here() {
    let facts = facts();
    for source in ["verifiers.links.ok || true", "call.argv[3] == 'x' || true", "!(1 / (round.n - 4) == 1 && false)"] {
        assert_eq!(cel_says(source, &facts), Some(true), "{source}");
        assert!(run(Scope::Rule, source, &facts).is_err(), "{source}");
    }
}
