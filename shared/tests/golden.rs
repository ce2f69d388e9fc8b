//! Golden vectors for hashing: texts whose canonical form and digest must never
//! change, or every chain and signature that was ever written breaks.
//!
//! The expected values were computed by another program. The test runs twice,
//! the second time with the feature `preserve-order-test`.

#![expect(clippy::unwrap_used, reason = "a helper that can't go on fails the test that called it")]

mod common;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, CheckpointRef, EffectEntry, Role, TaskSpec, Verdict};
use checkrein_shared::signing::{Envelope, KeyRecord, KeyRing, PayloadType, SigningKey};
use checkrein_shared::time::Timestamp;
use common::{folder, records, rewrite};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Canonical {
    name: String,
    input: String,
    canonical: String,
    digest: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    name: String,
    input: String,
    says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotHashed {
    name: String,
    input: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hashes {
    records: BTreeMap<String, Digest>,
    plan_hash: Digest,
    spec_hash: Digest,
    constraints_hash: Digest,
}

/// A verdict signed by another program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    seed: String,
    public_key: String,
    envelope: Envelope,
}

fn golden<T: DeserializeOwned>(file: &str) -> T {
    let text = std::fs::read(folder().join(file)).unwrap();
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn checkpoint(name: &str) -> Checkpoint {
    json::parse_as("checkpoint", &std::fs::read(folder().join("records").join(name)).unwrap()).unwrap()
}

#[test]
fn canonical_forms_and_their_digests_never_change() {
    let vectors: Vec<Canonical> = golden("canonical.json");
    assert!(vectors.len() >= 15);
    for vector in vectors {
        let value = json::parse(vector.input.as_bytes()).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        let canonical = String::from_utf8(json::canonical(&value).unwrap()).unwrap();
        assert_eq!(canonical, vector.canonical, "{}", vector.name);
        assert_eq!(json::digest(&value).unwrap(), vector.digest, "{}", vector.name);
        assert_eq!(json::parse(canonical.as_bytes()).unwrap(), value, "{}", vector.name);
    }
}

#[test]
fn texts_that_two_readers_could_read_differently_are_refused_with_the_reason() {
    for vector in golden::<Vec<Refused>>("refused.json") {
        let error = json::parse(vector.input.as_bytes()).expect_err(&vector.name).to_string();
        assert!(error.contains(&vector.says), "{}: {error}", vector.name);
    }
}

#[test]
fn numbers_that_readers_round_are_never_hashed() {
    for vector in golden::<Vec<NotHashed>>("not-hashed.json") {
        let value = json::parse(vector.input.as_bytes()).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        assert!(json::canonical(&value).is_err(), "{}", vector.name);
    }
}

#[test]
fn records_keep_their_bytes_and_their_digests() {
    let hashes: Hashes = golden("hashes.json");
    let mut found = BTreeMap::new();
    for record in records() {
        let canonical = rewrite(&record.schema, &record.text).unwrap_or_else(|e| panic!("{}: {e}", record.name));
        let as_written = json::canonical(&json::parse(&record.text).unwrap()).unwrap();
        let shown = (String::from_utf8_lossy(&canonical), String::from_utf8_lossy(&as_written));
        assert_eq!(shown.0, shown.1, "{}: reading it and writing it again changes it", record.name);
        found.insert(record.name, Digest::of(canonical));
    }
    assert_eq!(found, hashes.records);
}

#[test]
fn another_program_computes_the_same_keys_and_hashes_of_calls() {
    for record in records().into_iter().filter(|record| record.schema == "effect") {
        let entry: EffectEntry = json::parse_as("effect", &record.text).unwrap();
        assert_eq!(entry.call.key(&entry.task_id), entry.key, "{}", record.name);
        assert_eq!(entry.call.hash(), entry.call_hash, "{}", record.name);
    }
}

#[test]
fn a_chain_of_two_checkpoints_verifies() {
    let (first, second) = (checkpoint("checkpoint.json"), checkpoint("checkpoint.second.json"));
    first.check_hash().unwrap();
    second.check_hash().unwrap();
    first.check_follows(None).unwrap();
    let hashes: Hashes = golden("hashes.json");
    let head = CheckpointRef {
        id: first.checkpoint_id.clone(),
        hash: first.integrity.checkpoint_hash,
        sequence: first.sequence,
        record: hashes.records["checkpoint"],
    };
    second.check_follows(Some(&head)).unwrap();
    assert!(first.check_follows(Some(&head)).is_err());
    assert!(second.check_follows(None).is_err());
}

#[test]
fn every_field_of_a_checkpoint_is_under_its_hash() {
    let whole = serde_json::to_value(checkpoint("checkpoint.second.json")).unwrap();
    let mut changed = 0;
    for pointer in leaves(&whole) {
        if pointer == "/integrity/checkpoint_hash" {
            continue;
        }
        let mut value = whole.clone();
        let leaf = value.pointer_mut(&pointer).unwrap();
        *leaf = match leaf.clone() {
            serde_json::Value::Bool(b) => (!b).into(),
            serde_json::Value::Number(n) => (n.as_i64().unwrap() + 1).into(),
            serde_json::Value::String(s) => s.replacen(['0', '1', 'e', 'o'], "2", 1).into(),
            other => other,
        };
        // What no longer is a record is refused before its hash counts.
        let Ok(record) = serde_json::from_value::<Checkpoint>(value.clone()) else { continue };
        if value != whole {
            assert!(record.check_hash().is_err(), "{pointer} can be changed without notice");
            changed += 1;
        }
    }
    assert!(changed > 25, "only {changed} fields were tried");
}

fn leaves(value: &serde_json::Value) -> Vec<String> {
    let inside = |key: String, value| leaves(value).into_iter().map(move |l| format!("/{key}{l}"));
    match value {
        serde_json::Value::Object(map) => map.iter().flat_map(|(k, v)| inside(k.clone(), v)).collect(),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().flat_map(|(n, v)| inside(n.to_string(), v)).collect()
        }
        _ => vec![String::new()],
    }
}

#[test]
fn what_a_verdict_is_bound_to_is_computed_from_the_checkpoint() {
    let hashes: Hashes = golden("hashes.json");
    let text = std::fs::read(folder().join("records/task.json")).unwrap();
    let task: TaskSpec = json::parse_as("task", &text).unwrap();
    let first = checkpoint("checkpoint.json");
    assert_eq!(task.plan.hash(), hashes.plan_hash);
    assert_eq!(task.spec_hash(), hashes.spec_hash);
    assert_eq!(task.constraints[0].hash(), first.constraints[0].hash);
    assert_eq!(first.constraints_hash(), hashes.constraints_hash);
    let verdict: Verdict =
        json::parse_as("verdict", &std::fs::read(folder().join("records/verdict.json")).unwrap()).unwrap();
    assert_eq!(verdict.bindings.differences(&first.bindings()), []);
}

#[test]
fn a_verdict_that_another_program_signed_verifies_and_ours_is_the_same() {
    let signed: Signed = golden("envelope.json");
    let verdict: Verdict =
        json::parse_as("verdict", &std::fs::read(folder().join("records/verdict.json")).unwrap()).unwrap();
    let seed: [u8; 32] = STANDARD.decode(&signed.seed).unwrap().try_into().unwrap();
    let key = SigningKey::from_random(&seed.into());
    assert_eq!(STANDARD.encode(key.public_key()), signed.public_key);
    assert_eq!(key.sign(PayloadType::Verdict, &json::canonical(&verdict).unwrap()), signed.envelope);

    let at = Timestamp::from_millis(1_000);
    let mut ring = KeyRing::new();
    ring.add(KeyRecord::new(key.public_key(), Role::Reviewer, verdict.reviewer.identity.clone(), at)).unwrap();
    let verified = ring.verify(&signed.envelope, PayloadType::Verdict, Role::Reviewer, at).unwrap();
    assert_eq!(json::parse_as::<Verdict>("verdict", &verified.payload).unwrap(), verdict);
    assert_eq!(verified.instance, verdict.reviewer.identity);
    assert!(ring.verify(&signed.envelope, PayloadType::Checkpoint, Role::Reviewer, at).is_err());
}

#[cfg(feature = "preserve-order-test")]
#[test]
fn the_feature_does_keep_keys_in_the_order_in_which_they_came() {
    let value: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"b":1,"a":2}"#);
}
