//! Tests of expressions: what is refused, what is decided, what it costs.

mod agreement;
mod bounds;
mod decided;
mod mirror;
mod refused;

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
