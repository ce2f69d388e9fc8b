//! Whose signature counts, for what, and when.

use zeroize::Zeroizing;

use super::*;
use crate::json;
use crate::signing::SigningKey;

const VERDICT: PayloadType = PayloadType::Verdict;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn instance(name: &str) -> InstanceId {
    InstanceId::try_from(name.to_owned()).unwrap()
}

fn reviewer() -> (SigningKey, KeyRing) {
    let key = SigningKey::from_random(&Zeroizing::new([7; 32]));
    let mut ring = KeyRing::new();
    ring.add(KeyRecord::new(key.public_key(), Role::Reviewer, instance("reviewer-1"), at(100))).unwrap();
    (key, ring)
}

#[test]
fn a_verdict_counts_for_its_signer() {
    let (key, ring) = reviewer();
    let envelope = key.sign(VERDICT, b"{\"verdict\":\"approved\"}");
    let text = json::canonical(&envelope).unwrap();
    let envelope = json::parse_as("envelope", &text).unwrap();
    let verified = ring.verify(&envelope, VERDICT, Role::Reviewer, at(100)).unwrap();
    assert_eq!(verified.payload, b"{\"verdict\":\"approved\"}");
    assert_eq!((verified.instance, verified.key_id), (instance("reviewer-1"), key.key_id()));
}

#[test]
fn a_worker_can_not_sign_a_verdict() {
    let (_, mut ring) = reviewer();
    let worker = SigningKey::from_random(&Zeroizing::new([8; 32]));
    let envelope = worker.sign(VERDICT, b"approved");
    let verify = |ring: &KeyRing| ring.verify(&envelope, VERDICT, Role::Reviewer, at(100)).unwrap_err();
    assert_eq!(verify(&ring), Error::UnknownKey { key_id: worker.key_id() });
    ring.add(KeyRecord::new(worker.public_key(), Role::Worker, instance("worker-1"), at(0))).unwrap();
    assert!(matches!(verify(&ring), Error::WrongRole { expected: "reviewer", found: "worker", .. }));
}

#[test]
fn any_changed_byte_breaks_the_signature() {
    let (key, ring) = reviewer();
    let good = key.sign(VERDICT, b"rejected");
    let fails = |envelope: &Envelope| ring.verify(envelope, VERDICT, Role::Reviewer, at(100)).unwrap_err();

    let mut payload = good.clone();
    payload.payload = STANDARD.encode("approved");
    assert!(matches!(fails(&payload), Error::BadSignature { .. }));

    let mut other = good.clone();
    other.payload_type = PayloadType::Checkpoint;
    assert!(matches!(fails(&other), Error::WrongPayloadType { .. }));
    // Said to be what it is not: the signature covers the kind as well.
    assert!(matches!(
        ring.verify(&other, PayloadType::Checkpoint, Role::Reviewer, at(100)).unwrap_err(),
        Error::BadSignature { .. }
    ));

    for position in 0..64 {
        let mut bytes = STANDARD.decode(&good.signatures[0].sig).unwrap();
        bytes[position] ^= 1;
        let mut envelope = good.clone();
        envelope.signatures[0].sig = STANDARD.encode(bytes);
        assert!(matches!(fails(&envelope), Error::BadSignature { .. }));
    }
}

#[test]
fn malformed_envelopes_are_refused() {
    let (key, ring) = reviewer();
    let good = key.sign(VERDICT, b"approved");
    let check = |change: fn(&mut Envelope)| {
        let mut envelope = good.clone();
        change(&mut envelope);
        let error = ring.verify(&envelope, VERDICT, Role::Reviewer, at(100)).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    };
    check(|envelope| envelope.signatures.clear());
    check(|envelope| envelope.signatures.push(envelope.signatures[0].clone()));
    check(|envelope| envelope.signatures[0].sig.truncate(40));
    check(|envelope| envelope.signatures[0].sig = "?".to_owned());
    check(|envelope| envelope.payload = "?".to_owned());
    check(|envelope| envelope.payload = "A".repeat(6 << 20));
}

#[test]
fn rotation_keeps_old_signatures_and_compromise_does_not() {
    let (key, mut ring) = reviewer();
    let envelope = key.sign(VERDICT, b"approved");
    let state = |ring: &KeyRing, millis| match ring.verify(&envelope, VERDICT, Role::Reviewer, at(millis)) {
        Ok(_) => "valid",
        Err(Error::NotValid { state, .. }) => state,
        Err(other) => panic!("{other}"),
    };
    assert_eq!((state(&ring, 99), state(&ring, 100)), ("not yet valid", "valid"));

    ring.revoke(key.key_id(), at(500)).unwrap();
    ring.revoke(key.key_id(), at(900)).unwrap();
    assert_eq!((state(&ring, 499), state(&ring, 500), state(&ring, 950)), ("valid", "revoked", "revoked"));

    ring.compromise(key.key_id(), at(300)).unwrap();
    ring.compromise(key.key_id(), at(400)).unwrap();
    assert_eq!((state(&ring, 299), state(&ring, 300), state(&ring, 600)), ("valid", "compromised", "compromised"));

    let unknown = Digest::of("nobody");
    assert_eq!(ring.revoke(unknown, at(1)), Err(Error::UnknownKey { key_id: unknown }));
    assert_eq!(ring.compromise(unknown, at(1)), Err(Error::UnknownKey { key_id: unknown }));
}

#[test]
fn keys_are_added_once_and_only_if_usable() {
    let (key, mut ring) = reviewer();
    let record = ring.keys()[0].clone();
    ring.add(record.clone()).unwrap();
    assert_eq!(ring.keys().len(), 1);

    let stolen = KeyRecord::new(key.public_key(), Role::Orchestrator, instance("evil"), at(0));
    assert!(matches!(ring.add(stolen), Err(Error::BadKey { .. })));

    // The neutral point, for which a signature of zeros would do.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let weak = KeyRecord::new(neutral, Role::Reviewer, instance("weak"), at(0));
    assert!(matches!(ring.add(weak), Err(Error::BadKey { .. })));

    let misnamed = KeyRecord { key_id: Digest::of("other"), ..record };
    assert!(matches!(ring.add(misnamed), Err(Error::BadKey { .. })));
}

#[test]
fn a_ring_survives_a_round_trip_and_unknown_fields_are_refused() {
    let (_, ring) = reviewer();
    let text = json::canonical(&ring).unwrap();
    assert_eq!(json::parse_as::<KeyRing>("key ring", &text).unwrap(), ring);
    let more = String::from_utf8(text).unwrap().replace("\"role\"", "\"extra\":1,\"role\"");
    assert!(json::parse_as::<KeyRing>("key ring", more.as_bytes()).is_err());
}
