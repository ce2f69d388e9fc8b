//! The published JSON Schemas: they stand in `docs/schemas`, and they accept
//! and refuse what the records' own readers accept and refuse.
//!
//! `CHECKREIN_BLESS=1` writes them anew, for a change that is meant.

#![expect(clippy::unwrap_used, reason = "a helper that can't go on fails the test that called it")]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_shared::records::schemas;
use checkrein_shared::{policy, task_file};
use common::{records, rewrite};
use serde_json::{Map, Value, json};

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/schemas")
}

/// The same value with every object's keys in order, whatever order the build keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(entries.into_iter().map(|(k, v)| (k.clone(), sorted(v))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_published_schemas_are_those_of_this_build() {
    let bless = std::env::var_os("CHECKREIN_BLESS").is_some();
    let mut names = BTreeSet::new();
    let files = [("policy", policy::file_schema()), ("task-file", task_file::file_schema().as_value().clone())];
    let records = schemas().into_iter().map(|(name, schema)| (name, schema.as_value().clone()));
    for (name, schema) in records.chain(files) {
        let file = published().join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&sorted(&schema)).unwrap() + "\n";
        if bless {
            std::fs::create_dir_all(published()).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(there == text, "docs/schemas/{name}.json is not this build's: run this test with CHECKREIN_BLESS=1");
        names.insert(format!("{name}.json"));
    }
    let files = std::fs::read_dir(published()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.filter(|f| f.ends_with(".json")).collect::<BTreeSet<_>>(), names);
}

#[test]
fn every_schema_has_a_golden_record_and_accepts_it() {
    let mut without: BTreeSet<&str> = schemas().iter().map(|(name, _)| *name).collect();
    for record in records() {
        let (_, schema) = schemas().into_iter().find(|(name, _)| *name == record.schema).expect("a published schema");
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let value: Value = serde_json::from_slice(&record.text).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", record.name);
        without.remove(record.schema.as_str());
    }
    assert!(without.is_empty(), "no golden record for {without:?}");
}

/// Where every value stands, as JSON pointers.
fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| pointers(v, &format!("{here}/{}", escape(k)), found)),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, v)| pointers(v, &format!("{here}/{n}"), found)),
        _ => {}
    }
}

/// The value with one change at each place: a key too many, a key missing, a value of another type.
fn damaged(whole: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    pointers(whole, "", &mut places);
    let mut variants = Vec::new();
    for place in places {
        let mut change = |what: &str, edit: &dyn Fn(&mut Value)| {
            let mut copy = whole.clone();
            edit(copy.pointer_mut(&place).expect("the place is there"));
            variants.push((format!("{what} at `{place}`"), copy));
        };
        for other in [Value::Null, json!(-1), json!(1.5), json!("?"), json!([[]]), json!({}), json!(true)] {
            change(&format!("{other}"), &|value| *value = other.clone());
        }
        let Some(Value::Object(map)) = whole.pointer(&place) else { continue };
        change("a key too many", &|value| drop(value.as_object_mut().unwrap().insert("unexpected".into(), json!("?"))));
        for key in map.keys() {
            let without = |value: &mut Value| drop(value.as_object_mut().unwrap().remove(key));
            change(&format!("`{key}` missing"), &without);
        }
    }
    variants
}

#[test]
fn schemas_and_readers_agree_on_what_is_refused() {
    let (mut disagree, mut refused) = (Vec::new(), 0);
    for record in records() {
        let (_, schema) = schemas().into_iter().find(|(name, _)| *name == record.schema).expect("a published schema");
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let whole: Value = serde_json::from_slice(&record.text).unwrap();
        for (what, value) in damaged(&whole) {
            let text = serde_json::to_vec(&value).unwrap();
            let (by_schema, by_reader) = (validator.is_valid(&value), rewrite(&record.schema, &text).is_ok());
            refused += usize::from(!by_reader);
            if by_schema != by_reader {
                disagree.push(format!("{}: {what}: schema {by_schema}, reader {by_reader}", record.name));
            }
        }
    }
    assert!(disagree.is_empty(), "{} disagreements:\n{}", disagree.len(), disagree.join("\n"));
    assert!(refused > 1_000, "only {refused} changes were refused");
}

#[test]
fn an_unknown_field_is_refused_in_every_record_by_schema_and_reader() {
    for record in records() {
        let (_, schema) = schemas().into_iter().find(|(name, _)| *name == record.schema).expect("a published schema");
        let mut value: Value = serde_json::from_slice(&record.text).unwrap();
        value.as_object_mut().unwrap().insert("unexpected".into(), json!(1));
        assert!(!jsonschema::is_valid(schema.as_value(), &value), "{}", record.name);
        let error = rewrite(&record.schema, &serde_json::to_vec(&value).unwrap()).unwrap_err().to_string();
        assert!(error.contains("unexpected"), "{}: {error}", record.name);
    }
}
