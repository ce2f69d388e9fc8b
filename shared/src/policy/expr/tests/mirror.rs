//! The schema says the same as the facts and the records.

use super::*;

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
