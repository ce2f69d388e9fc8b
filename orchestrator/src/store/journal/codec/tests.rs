use proptest::prelude::*;
use serde_json::json;

use super::*;

fn draft(event: Value, version: u64) -> Draft {
    Draft {
        at: Timestamp::from_millis(1_785_110_400_000),
        cause: Some("m-in".parse().unwrap()),
        decision: json!({ "rule": "r-1" }),
        event,
        kind: "tested".to_owned(),
        messages: vec![OutgoingMessage {
            id: "m-1".parse().unwrap(),
            queue: "jobs.default".parse().unwrap(),
            kind: "job".to_owned(),
            epoch: 1,
            body: json!({ "é": "\u{7f}\u{1F600}" }),
        }],
        rows: vec![
            RowChange::Put { table: "effect".to_owned(), key: "k-1".to_owned(), value: json!({ "b": 1, "a": 2 }) },
            RowChange::Remove { table: "effect".to_owned(), key: "k-2".to_owned() },
        ],
        state: json!({ "state": "running" }),
        task: Some("t-1".parse().unwrap()),
        timers: vec![TimerChange::Clear { id: "lease".parse().unwrap() }],
        version,
    }
}

fn seal(draft: Draft, head: Head) -> (Vec<u8>, Head) {
    let mut line = Vec::new();
    let head = Prepared::new(draft).unwrap().seal(head, &mut line);
    (line, head)
}

#[test]
fn a_line_is_exactly_this_text() {
    let (line, head) = seal(draft(json!({ "b": 1, "a": null }), 1), Head::default());
    let record = r#"{"at":"2026-07-27T00:00:00.000Z","cause":"m-in","decision":{"rule":"r-1"},"event":{"a":null,"b":1},"kind":"tested","messages":[{"body":{"é":"DEL😀"},"epoch":1,"id":"m-1","kind":"job","queue":"jobs.default"}],"previous":null,"rows":[{"put":{"key":"k-1","table":"effect","value":{"a":2,"b":1}}},{"remove":{"key":"k-2","table":"effect"}}],"sequence":1,"state":{"state":"running"},"task":"t-1","timers":[{"clear":{"id":"lease"}}],"version":1}"#
        .replace("DEL", "\u{7f}");
    let hash = Digest::of(&record);
    assert_eq!(hash.to_string(), "sha256:06f514af3b2fcd115f4a86fb113964fcb66a03f6458622c41ed16cbd469821bc");
    assert_eq!(String::from_utf8(line).unwrap(), format!("{{\"hash\":\"{hash}\",\"record\":{record}}}\n"));
    assert_eq!(head, Head { count: 1, hash: Some(hash) });
    let prepared = Prepared::new(draft(json!({ "b": 1, "a": null }), 1)).unwrap();
    let (_, state) = prepared.into_recorded(None, head);
    assert_eq!(state.as_bytes(), br#"{"state":"running"}"#);
}

#[test]
fn a_header_is_exactly_this_text_and_no_other_is_accepted() {
    let first = Header::new(1, Head::default());
    let text = "{\"checkrein\":\"journal\",\"format\":2,\"previous\":null,\"segment\":1,\"sequence\":1}\n";
    assert_eq!(String::from_utf8(first.encode()).unwrap(), text);
    assert_eq!(Header::decode(text.as_bytes()).unwrap(), first);
    assert_eq!(Header::decode(text.replace(":2,\"p", ":1,\"p").as_bytes()).unwrap(), Header { format: 1, ..first });
    for other in [0, 3] {
        let text = text.replace(":2,\"p", &format!(":{other},\"p"));
        assert_eq!(Header::decode(text.as_bytes()), Err(HeaderFlaw::Format(other)));
    }
    // A later format may have other fields: the number is what counts.
    let later = b"{\"checkrein\":\"journal\",\"format\":9,\"other\":true}\n";
    assert_eq!(Header::decode(later), Err(HeaderFlaw::Format(9)));
    for bad in ["", "\n", "{}\n", text.trim_end(), &text.replace(',', ", "), &text.replace("journal", "x")] {
        assert!(matches!(Header::decode(bad.as_bytes()), Err(HeaderFlaw::Text(_))), "{bad:?}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-json::INTEGER_MAX..=json::INTEGER_MAX).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sealed_line_is_the_canonical_form_and_reads_back_the_same(event in values(), count in 0..1_000u64, version in 1..1_000u64) {
        let before = Head { count, hash: (count > 0).then(|| Digest::of("before")) };
        let (line, head) = seal(draft(event.clone(), version), before);
        let (hash, record) = open_line(&line).unwrap();
        let recorded = decode_strictly(FORMAT, hash, record).unwrap();
        prop_assert!(decode_strictly(1, hash, record).is_err(), "format 1 has no rows");
        prop_assert_eq!(Some(recorded.hash), head.hash);
        prop_assert_eq!(decode(hash, record).unwrap(), recorded.clone());
        let (slim, text) = decode_slim(hash, record).unwrap();
        prop_assert_eq!(text, json::canonical(&recorded.record.state).unwrap());
        let left_out = Record { event: Value::Null, decision: Value::Null, state: Value::Null, ..recorded.record.clone() };
        prop_assert_eq!(slim, Recorded { record: left_out, ..recorded.clone() });
        let (expected, state) = Prepared::new(draft(event, version)).unwrap().into_recorded(before.hash, head);
        prop_assert_eq!(&recorded, &expected);
        prop_assert_eq!(state.as_bytes(), json::canonical(&expected.record.state).unwrap());
        prop_assert_eq!(json::digest(&recorded.record).unwrap(), hash);
        let link = link(record).unwrap();
        prop_assert_eq!((link.sequence, link.previous), (count + 1, before.hash));
    }

    #[test]
    fn any_changed_byte_is_noticed(event in values(), index: prop::sample::Index, flip in 1..=255u8) {
        let (mut line, _) = seal(draft(event, 1), Head::default());
        let index = index.index(line.len());
        line[index] ^= flip;
        prop_assert!(open_line(&line).is_err());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(open_line(&bytes).is_err());
        prop_assert!(Header::decode(&bytes).is_err());
    }
}
