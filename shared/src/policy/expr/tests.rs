//! Tests of expressions: what is refused, what is decided, what it costs.

use std::time::{Duration, Instant};

use super::*;
use crate::policy::facts::{CallFacts, Facts, FindingFacts, ReviewFacts, VerifierFacts};

fn verifiers() -> Vec<String> {
    vec!["links".to_owned(), "unit".to_owned()]
}

fn compile(scope: Scope, source: &str) -> Result<Expression, ExprError> {
    Expression::compile(source, &Schema::new(scope, &verifiers()))
}

#[track_caller]
fn refused(source: &str, message: &str, hint: &str) {
    let error = compile(Scope::Rule, source).expect_err(source);
    assert!(error.message.contains(message), "{source}: {error:?}");
    assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{source}: {error:?}");
}

fn run(scope: Scope, source: &str, facts: &Facts) -> Result<bool, EvalError> {
    let expression = compile(scope, source).unwrap_or_else(|e| panic!("{source}: {e:?}"));
    expression.evaluate(&World::new(facts), &mut Vec::new())
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.round.n = 4;
    facts.round.rejections = 1;
    facts.step.risk = "R3".to_owned();
    facts.task.labels.insert("team".to_owned(), "core".to_owned());
    facts.checkpoint.hash = "sha256:abc".to_owned();
    facts.changeset.paths = vec!["docs/a.md".to_owned(), "src/lib.rs".to_owned()];
    facts.verifiers.insert("unit".to_owned(), VerifierFacts { ok: true, exit: 0, flaky: false });
    facts.reviews.push(ReviewFacts { name: "bot".into(), verdict: "rejected".into(), ..ReviewFacts::default() });
    facts.open_findings.push(FindingFacts { id: "f-1".into(), severity: "high".into(), ..FindingFacts::default() });
    let args = serde_json::json!({ "amount": 5, "ratio": 1.5, "to": { "name": "x" }, "none": null });
    let serde_json::Value::Object(args) = args else { unreachable!() };
    facts.call =
        Some(CallFacts { name: "builtin:run_command".into(), args, argv: vec!["git".into()], ..CallFacts::default() });
    facts
}

#[test]
fn misspelt_names_are_errors_with_the_nearest_known_name() {
    refused("verdict.rund > 3 || true", "unknown name `verdict`", "");
    refused("round.rejektions > 0", "no field `rejektions`", "did you mean `rejections`?");
    refused("has(round.complet)", "no field `complet`", "did you mean `complete`?");
    refused("ruond.n > 1", "unknown name `ruond`", "did you mean `round`?");
    refused("changeset.paths.exist(p, true)", "unknown method `exist`", "did you mean `exists`?");
    refused("glop('a', 'b')", "unknown function `glop`", "did you mean `glob`?");
    refused("verifiers.link.ok", "no field `link`", "did you mean `links`?");
    refused("'linkz' in verifiers", "no field `linkz`", "did you mean `links`?");
    refused("reviews.exists(r, r.verdict == 'reject')", "'reject' is never a verdict", "did you mean `rejected`?");
    refused("trigger in ['changeset.before_aply']", "is never a trigger", "did you mean `changeset.before_apply`?");
    refused("step.risk == 'R5'", "'R5' is never a risk", "");
}

#[test]
fn types_are_checked_before_anything_runs() {
    refused("'yes'", "must be a bool; this is a string", "");
    refused("round.n", "must be a bool; this is an int", "");
    refused("round.n == '4'", "an int can't be compared with a string", "");
    refused("round.n && true", "`&&` needs a bool; this is an int", "");
    refused("!round.n", "`!` needs a bool", "");
    refused("round.n > 1u", "unsigned", "write `1`");
    refused("round.n > 1.5", "fractions", "");
    refused("tests == null", "ever null", "has(..)");
    refused("round.n + 'a' == 'b'", "can't be calculated", "");
    refused("reviews.verdict == 'rejected'", "a list of a review has no field `verdict`", ".exists(");
    refused("changeset.paths.contains('a')", "only a string can be asked this", "in list");
    refused("f.severity < 'high'", "unknown name `f`", "");
    refused("open_findings.exists(f, f.severity > 'low')", "a severity has no order", "list the words");
    refused("round.n in ['a']", "an int is never in a list of string", "");
    refused("['a', 1] == []", "the list mixes", "");
    refused("changeset.paths[0]", "must be a bool", "");
    refused("changeset.paths['a'] == 'b'", "can't be indexed with a string", "");
    refused("true ? 1 : 'a'", "chooses between", "");
    refused("{'a': true}.a", "mappings can't be written", "");
    refused("Foo{a: 1}.a", "can't be made", "");
    refused(".round.n > 1", "unknown name `.round`", "");
    refused("b'a' == b'a'", "byte strings", "");
}

#[test]
fn functions_want_their_arguments() {
    refused("glob(changeset.paths, 'a')", "`glob` needs a string", "");
    refused("glob('a', task.objective)", "must be written out", "");
    refused("glob('a', '[')", "is not a glob", "");
    refused("glob('a', '/etc/*')", "never matches", "");
    refused("glob('a')", "wrong arguments", "glob(path");
    refused("sample(checkpoint, 101)", "no percentage", "");
    refused("sample(round, 10)", "draws from the checkpoint", "sample(checkpoint");
    refused("has(round)", "asks for a field", "has(a.b)");
    refused("changeset.paths.exists(true, true)", "names a variable", "");
    refused("changeset.paths.exists(round, true)", "is taken", "");
    refused("size(round.n) > 1", "has no size", "");
    refused("exists(changeset.paths, p, true)", "unknown function `exists`", "x.exists(..)");
}

#[test]
fn a_name_that_another_place_sees_says_so() {
    let error = compile(Scope::Checkpoint, "round.n > 1").unwrap_err();
    assert!(error.hint.unwrap().contains("seen by a rule's condition"));
    let error = compile(Scope::Tool, "changeset.files > 1").unwrap_err();
    assert!(error.hint.unwrap().contains("not by a tool's condition"));
}

#[test]
fn errors_say_at_which_byte() {
    assert_eq!(compile(Scope::Rule, "round.n > 1 && rnd.n > 1").unwrap_err().offset, 15);
    assert_eq!(compile(Scope::Rule, "'é' == 'é' && rnd.n > 1").unwrap_err().offset, 16);
    assert_eq!(compile(Scope::Rule, "true &&\n  (").unwrap_err().offset, 11);
}

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

/// Runs on a small stack, as threads of the runtime have.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap()
}

#[test]
fn no_nesting_overflows_a_small_stack() {
    let nested =
        |open: &str, close: &str, levels: usize| format!("{}true{}", open.repeat(levels), close.repeat(levels));
    let mut sources = vec![
        nested("(", ")", 500),
        nested("!(", ")", 300),
        nested("[", "]", 500),
        nested("true ? ", " : false", 60),
        format!("{}true", "!".repeat(1_000)),
        format!("{}1 == 1", "-".repeat(1_000)),
        format!("{}1 == 1", "1+".repeat(500)),
        format!("{}true", "true&&".repeat(170)),
        format!("{}true", "true==".repeat(170)),
        format!("task{}", ".id".repeat(300)),
        format!("call.args{} == 1", "['a']".repeat(150)),
        format!("{}true{}", "changeset.paths.all(p,".repeat(40), ")".repeat(40)),
        "(".repeat(1_024),
        "\"".repeat(1_023),
        "'''".repeat(300),
        "a ? b : ".repeat(120),
        "\\".repeat(1_000),
    ];
    for levels in 1..=40 {
        sources.push(nested("(", ")", levels));
        sources.push(nested("!(", ")", levels));
    }
    on_a_small_stack(move || {
        for source in sources {
            if let Ok(expression) = compile(Scope::Rule, &source) {
                let _ = expression.evaluate(&World::new(&facts()), &mut Vec::new());
            }
        }
    });
    assert!(compile(Scope::Rule, &nested("(", ")", 20)).is_ok());
    assert!(compile(Scope::Rule, &nested("!(", ")", 40)).unwrap_err().message.contains("nested deeper"));
    refused(&format!("{}1 == 1", "1+".repeat(60)), "nested deeper", "");
    refused(&" ".repeat(2_000), "longer than 1024 bytes", "");
    refused(" ", "empty", "");
}

#[test]
fn macros_nest_two_levels_and_no_deeper() {
    let two = "changeset.paths.all(p, changeset.paths.exists(q, p == q))";
    assert!(compile(Scope::Rule, two).is_ok());
    refused("changeset.paths.all(p, changeset.paths.all(q, changeset.paths.all(r, true)))", "deeper than 2", "");
}

#[test]
fn the_cost_of_an_evaluation_is_bounded() {
    let mut facts = facts();
    facts.changeset.paths = (0..20_000).map(|n| format!("src/some/folder/file-{n}.rs")).collect();
    assert_eq!(run(Scope::Rule, "changeset.paths.all(p, glob(p, 'src/**'))", &facts), Ok(true));
    let expression = compile(Scope::Rule, "changeset.paths.all(p, changeset.paths.all(q, p != q + 'x'))").unwrap();
    let world = World::new(&facts);
    let start = Instant::now();
    let error = on_a_small_stack(move || expression.evaluate(&world, &mut Vec::new())).unwrap_err();
    assert_eq!(error.message, "the evaluation takes too many steps");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn the_schema_and_the_facts_name_the_same_things() {
    let mut facts = facts();
    facts.verifiers.insert("links".to_owned(), VerifierFacts::default());
    let json = serde_json::to_value(&facts).unwrap();
    let schema = Schema::new(Scope::Rule, &verifiers());
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(sorted, schema.roots.keys().collect::<Vec<_>>());
    for (name, of) in &schema.roots {
        same_shape(name, &json[name], of);
    }
}

fn same_shape(name: &str, json: &serde_json::Value, of: &types::Type) {
    use types::Type;
    match of {
        Type::Bool => assert!(json.is_boolean(), "{name}"),
        Type::Int => assert!(json.is_i64() || json.is_u64(), "{name}"),
        Type::Text | Type::Word(_) => assert!(json.is_string(), "{name}"),
        Type::List(item) => json.as_array().unwrap().iter().for_each(|value| same_shape(name, value, item)),
        Type::Map(_) => assert!(json.is_object(), "{name}"),
        Type::Any => {}
        Type::Object(object) => {
            let mut keys: Vec<&String> = json.as_object().unwrap().keys().filter(|key| *key != "hash").collect();
            keys.sort();
            assert_eq!(keys, object.fields.keys().collect::<Vec<_>>(), "{name}");
            for (field, of) in &object.fields {
                same_shape(&format!("{name}.{field}"), &json[field], of);
            }
        }
    }
}

#[test]
fn the_vocabularies_are_those_of_the_records() {
    use crate::records::{FindingStatus, Judgement, Risk, Severity, Trigger};
    let ok = |source: String| compile(Scope::Rule, &source).map(|_| ()).unwrap_or_else(|e| panic!("{source}: {e:?}"));
    Trigger::ALL.iter().for_each(|t| ok(format!("trigger == '{}'", t.as_str())));
    for risk in [Risk::R0, Risk::R1, Risk::R2, Risk::R3, Risk::R4] {
        ok(format!("step.risk == '{}'", risk.as_str()));
    }
    for severity in [Severity::Low, Severity::Medium, Severity::High, Severity::Critical] {
        ok(format!("open_findings.exists(f, f.severity == '{}')", severity.as_str()));
    }
    for status in [FindingStatus::New, FindingStatus::Open, FindingStatus::Fixed, FindingStatus::Regressed] {
        ok(format!("open_findings.exists(f, f.status == '{}')", status.as_str()));
    }
    for verdict in [Judgement::Approved, Judgement::ChangesRequired, Judgement::Rejected, Judgement::Inconclusive] {
        ok(format!("reviews.exists(r, r.verdict == '{}')", verdict.as_str()));
    }
}
