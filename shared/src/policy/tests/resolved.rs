//! The resolved form: what a task pins comes back the same, and only the same.

use super::{compiled, load};
use crate::policy::*;

#[test]
fn a_pinned_policy_comes_back_the_same_and_decides_the_same() {
    for name in BUILT_IN {
        let policy = load_named(name).unwrap();
        let bytes = policy.to_bytes();
        let again = ResolvedPolicy::from_bytes(&bytes).unwrap();
        assert_eq!(again, policy);
        assert_eq!(again.digest(), policy.digest());
        assert_eq!(again.digest(), crate::digest::Digest::of(&bytes));
        assert_eq!(again.compile().unwrap().digest(), policy.digest());
        assert!(run_policy_tests(&again.compile().unwrap()).iter().all(TestResult::passed));
    }
}

#[test]
fn a_pinned_policy_that_was_tampered_with_is_refused() {
    let good = String::from_utf8(load_named("default").unwrap().to_bytes()).unwrap();
    for (from, to) in [
        ("\"format\":1", "\"format\":2"),
        ("\"format\":1", "\"format\":1,\"extra\":1"),
        ("round.complete", "round.compleet"),
        ("\"default_level\":\"owner\"", "\"default_level\":\"nobody\""),
        ("\"gate\":true,\"on\":true", "\"gate\":false,\"on\":true"),
        ("\"approvers\":1", "\"approvers\":0"),
        ("\"approvers\":1", "\"approvers\":1.5"),
        ("\"approvers\":1", "\"approvers\":1,\"approvers\":1"),
    ] {
        assert!(good.contains(from), "{from}");
        let bad = good.replace(from, to);
        assert!(ResolvedPolicy::from_bytes(bad.as_bytes()).is_err(), "{from} -> {to}");
    }
    assert!(ResolvedPolicy::from_bytes(b"").is_err());
    assert!(ResolvedPolicy::from_bytes(b"null").is_err());
}

#[test]
fn the_digest_follows_the_meaning() {
    let digest = |text: &str| load(text).unwrap().digest();
    let base = digest("version: 1\nretention: {done: 1d}\n");
    assert_eq!(base, digest("version: 1\nretention: {done: 1d}\n"));
    assert_ne!(base, digest("version: 1\nretention: {done: 2d}\n"));
}

#[test]
fn a_facts_schema_is_published_with_the_policy_files_schema() {
    let schema = file_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for name in BUILT_IN {
        let json: serde_json::Value = serde_saphyr::from_str(built_in(name).unwrap()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    for bad in [
        serde_json::json!({}),
        serde_json::json!({ "version": 1, "ruls": [] }),
        serde_json::json!({ "version": 1, "checks": { "secrets": "maybe" } }),
        serde_json::json!({ "version": 1, "triggers": { "changeset.before_aply": {} } }),
        serde_json::json!({ "version": 1, "verifiers": { "a": { "run": [] } } }),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

#[test]
fn a_decision_is_a_record_that_comes_back_the_same() {
    let policy = compiled("version: 1\n");
    let outcome = evaluate_rules(&policy, RuleEvent::Failed, &Facts::default(), &Fired::new());
    let bytes = crate::json::canonical(&outcome).unwrap();
    assert_eq!(crate::json::parse_as::<Outcome>("outcome", &bytes).unwrap(), outcome);
}
