//! Tests of policies as a whole: files in, decisions out.

mod bad_input;
mod deciding;
mod merging;
mod resolved;
mod shipped;
mod three;
mod warnings;

use super::*;

/// Loads a policy from text, without files.
fn load(text: &str) -> Result<ResolvedPolicy, PolicyError> {
    load_text("policy.yaml", text.as_bytes())
}

#[track_caller]
fn compiled(text: &str) -> CompiledPolicy {
    load(text).unwrap_or_else(|error| panic!("{error}")).compile().unwrap()
}

/// The text must be refused; returns all problems as people see them.
#[track_caller]
fn refused(text: &str) -> String {
    match load(text) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Facts of a round in which everything is well.
fn approved_round() -> Facts {
    let mut facts = Facts { trigger: "changeset.before_apply".to_owned(), ..Facts::default() };
    facts.round = RoundFacts { n: 1, complete: true, approvals: 1, coverage_pct: 100, ..RoundFacts::default() };
    facts
}
