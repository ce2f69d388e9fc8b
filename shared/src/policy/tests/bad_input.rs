//! Malformed and misleading files: each is a typed error with a place, never a
//! permissive default.

use std::time::{Duration, Instant};

use super::refused;
use crate::policy::load_text;

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    let error = refused(text);
    for part in expected {
        assert!(error.contains(part), "{text}\n  lacks `{part}` in:\n{error}");
    }
}

#[test]
fn files_without_a_policy_are_errors() {
    says("", &["has no content"]);
    says("# only a comment\n", &["has no content"]);
    says("---\n", &["has no content"]);
    says("- version: 1\n", &["policy.yaml:1:1", "not a mapping"]);
    says("version\n", &["not a mapping"]);
    says("{}\n", &["`version` is missing"]);
    says("version: 2\n", &["1:10", "version 2 is not known"]);
    says("version: 1\n---\nversion: 1\n", &["policy.yaml:3:1", "second document"]);
}

#[test]
fn broken_yaml_is_an_error_with_a_place() {
    says("version: 1\nrules: [\n", &["policy.yaml:2:", "not valid YAML"]);
    says("version: 1\nrules:\n\t- a\n", &["policy.yaml:3:", "tab", "indent with spaces"]);
    says("version: 1\nextends: 'x\n", &["policy.yaml:2:10"]);
    says("version: 1\nextends: a: b\n", &["policy.yaml:2:"]);
    says("version: 1\nextends: !env FOO\n", &["policy.yaml:2:", "tag"]);
    says("version: 1\nextends: \"a\u{0}b\"\n", &["policy.yaml:2:"]);
    says("version: 1\nextends: \u{feff}x\n", &["policy.yaml:2:"]);
}

#[test]
fn bytes_that_are_no_utf8_text_are_an_error_with_a_line() {
    let error = load_text("policy.yaml", b"version: 1\n# \xff\n").unwrap_err().to_string();
    assert!(error.contains("policy.yaml:2:1") && error.contains("UTF-8"), "{error}");
    let utf16: Vec<u8> = "version: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(load_text("policy.yaml", &[&[0xff, 0xfe], &utf16[..]].concat()).is_err());
}

#[test]
fn a_byte_order_mark_and_crlf_mean_nothing() {
    let plain = "version: 1\nrules:\n- {id: a, on: [late], when: \"true\", action: warn}\n";
    let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    let (plain, marked) = (super::load(plain).unwrap(), super::load(&marked).unwrap());
    assert_eq!(plain.rules, marked.rules);
    assert_eq!(plain.reviews, marked.reviews);
}

#[test]
fn a_key_that_stands_twice_is_an_error_that_names_both_lines() {
    says(
        "version: 1\nworkspace:\n  commit: true\n  to: branch\n  commit: false\n",
        &["policy.yaml:5:3", "`commit` stands twice, first in line 3"],
    );
    says("version: 1\nrules: []\nrules: []\n", &["policy.yaml:3:1", "line 2"]);
    says("version: 1\nescalation:\n  a: {to: [x]}\n  'a': {to: [y]}\n", &["policy.yaml:4:3"]);
}

#[test]
fn a_misspelt_key_is_an_error_at_every_level() {
    for (text, place, hint) in [
        ("version: 1\nruls: []\n", "2:1", "`rules`"),
        ("version: 1\nrules:\n- {id: a, on: [round], when: 'true', action: block, levl: x}\n", "3:", "`level`"),
        ("version: 1\nescalation:\n  a:\n    to: [x]\n    on_timeuot: block\n", "5:5", "`on_timeout`"),
        ("version: 1\nverifiers:\n  a: {run: [x], tiemout: 1s}\n", "3:", "`timeout`"),
        ("version: 1\nreviews:\n- {name: a, kind: rules, onn: [approval.after]}\n", "3:", "`on`"),
        ("version: 1\ntools:\n- {mach: x, effect: read_only, mode: allow}\n", "3:", "`match`"),
        ("version: 1\ntriggers:\n  changeset.before_aply: {on: true}\n", "3:3", "`changeset.before_apply`"),
        ("version: 1\ntriggers:\n  approval.after: {gte: true}\n", "3:", "`gate`"),
        ("version: 1\ntriggers:\n  min_intervall: 1s\n", "3:3", "`min_interval`"),
        ("version: 1\nbudgets: {taks: {}}\n", "2:11", "`task`"),
        ("version: 1\nbudgets: {task: {turn: 1}}\n", "2:18", "`turns`"),
        ("version: 1\nchecks: {secret: block}\n", "2:", "`secrets`"),
        ("version: 1\nchecks: {size: {mode: warn, file: 3}}\n", "2:", "`files`"),
        ("version: 1\nworkspace: {confinment: required}\n", "2:", "`confinement`"),
        ("version: 1\ninherit: {bas: whole}\n", "2:", "`base`"),
        ("version: 1\nredaction: {pack: []}\n", "2:", "`packs`"),
        ("version: 1\nredaction: {extra: [{id: a, regexp: b}]}\n", "2:", "`regex`"),
        ("version: 1\nretention: {don: 1d}\n", "2:", "`done`"),
        ("version: 1\nconstraints: [{id: a, version: 1, txt: b}]\n", "2:", "`text`"),
        ("version: 1\ntests: [{name: a, expect: {rule: a, actoin: block}}]\n", "2:", "`action`"),
    ] {
        says(text, &[&format!("policy.yaml:{place}"), "unknown", &format!("did you mean {hint}?")]);
    }
}

#[test]
fn words_of_yaml_1_1_are_texts_and_never_booleans() {
    for word in ["yes", "no", "on", "off", "y", "n", "Yes", "NO", "True", "FALSE"] {
        // `True` and `FALSE` are booleans in YAML 1.2, spelt oddly.
        says(&format!("version: 1\nworkspace:\n  commit: {word}\n"), &["policy.yaml:3:11", word, "true or false"]);
    }
    let policy = super::load(
        "version: 1\nrules:\n- {id: no, on: [round], when: \"true\", action: block}\nchecks: {secrets: off}\n",
    )
    .unwrap();
    assert!(policy.rule("no").is_some());
    assert_eq!(policy.checks.mode(crate::policy::CheckName::Secrets), crate::policy::CheckMode::Off);
    for nothing in ["~", "null", ""] {
        says(
            &format!("version: 1\nrules:\n- id: {nothing}\n  on: [round]\n  when: 'true'\n  action: block\n"),
            &["policy.yaml:3:", "`id` has no value"],
        );
        says(&format!("version: 1\ntools: {nothing}\n"), &["policy.yaml:2:", "`tools` has no value"]);
    }
    says(
        "version: 1\nrules:\n- {id: true, on: [round], when: 'true', action: block}\n",
        &["expected text, found the boolean `true`", "in quotes"],
    );
}

#[test]
fn odd_numbers_are_errors_and_never_other_numbers() {
    for number in
        ["010", "1_000", "1e3", "08", "12:30", "0x10", "0o17", "+5", "1.0", "'5'", "true", "99999999999999999999"]
    {
        says(
            &format!("version: 1\nrules:\n- {{id: a, on: [late], when: 'true', action: retry, limit: {number}}}\n"),
            &["policy.yaml:3:", "`rules[0].limit`", "expected a whole number"],
        );
    }
    for number in ["-1", "4294967296"] {
        says(
            &format!("version: 1\nrules:\n- {{id: a, on: [late], when: 'true', action: retry, limit: {number}}}\n"),
            &["policy.yaml:3:", "`rules[0].limit`"],
        );
    }
    for span in ["30", "1_0s", "010s", "1.5h", "5 m", "12:30"] {
        says(&format!("version: 1\nretention: {{done: {span}}}\n"), &["policy.yaml:2:", "not a duration"]);
    }
    says("version: 1\nverifiers: {a: {run: [make, 0x10]}}\n", &["policy.yaml:2:", "`0x10`", "in quotes"]);
    let policy = super::load("version: 1\nverifiers: {a: {run: [make, -j, 2]}}\n").unwrap();
    assert_eq!(policy.verifiers["a"].argv(), ["make", "-j", "2"]);
}

#[test]
fn merge_keys_and_alias_bombs_are_refused_quickly() {
    says("version: 1\n<<: {rules: []}\n", &["policy.yaml:2:1", "merge keys"]);
    says("version: 1\nbudgets:\n  task: &t {turns: 1}\n  step: {<<: *t}\n", &["policy.yaml:4:", "merge keys"]);
    let mut bomb = "version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let previous = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [previous.as_str(); 9].join(", "));
    }
    let start = Instant::now();
    says(&bomb, &["aliases expand to too much"]);
    assert!(start.elapsed() < Duration::from_secs(2));
    says("version: 1\ntools: &a [*a]\n", &["policy.yaml:2:"]);
    let policy = super::load("version: 1\nbudgets: {task: &t {turns: 7}, step: *t}\n").unwrap();
    assert_eq!(policy.budgets.step.turns, Some(7));
}

#[test]
fn files_that_are_too_large_or_too_deep_are_refused() {
    says(&format!("version: 1\n# {}\n", "x".repeat(300 * 1024)), &["larger than 256 KiB"]);
    says(&format!("version: 1\ntests: {}{}\n", "[".repeat(5_000), "]".repeat(5_000)), &["policy.yaml"]);
    says(&format!("version: 1\n{}\n", "? ".repeat(3_000)), &["policy.yaml"]);
    let wide = "- x\n".repeat(60_000);
    says(&format!("version: 1\ntools:\n{wide}"), &["too large"]);
}

#[test]
fn all_problems_of_a_file_are_listed_at_once() {
    let error = crate::policy::load_text(
        "policy.yaml",
        b"version: 1\nruls: []\nrules:\n- {id: a, on: [round], when: 'true', action: explode}\n- {id: b, on: [round], when: 'true', action: block, limit: x}\nbudgets: {task: {turns: no}}\n",
    )
    .unwrap_err();
    let lines: Vec<u64> = error.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 4, 5, 6], "{error}");
    assert!(error.to_string().contains("unknown value `explode`"), "{error}");
}

#[test]
fn expressions_are_errors_at_their_own_line_and_column() {
    says(
        "version: 1\nrules:\n- id: a\n  on: [round]\n  when: \"round.n > 1 && ruond.n > 1\"\n  action: block\n",
        &["policy.yaml:5:25", "unknown name `ruond`", "did you mean `round`?"],
    );
    says(
        "version: 1\nrules:\n- id: a\n  on: [round]\n  when: >-\n    round.n > 1\n    && round.nn > 1\n  action: block\n",
        &["policy.yaml:7:13", "no field `nn`"],
    );
    says(
        "version: 1\nrules:\n- id: a\n  on: [round]\n  when: |\n    round.n > 1\n    && 'x'\n  action: block\n",
        &["policy.yaml:7:8", "`&&` needs a bool"],
    );
    says(
        "version: 1\nreviews:\n- {name: rules, when: \"round.complete\"}\n",
        &["policy.yaml:3:24", "unknown name `round`", "a rule's condition"],
    );
    says(
        "version: 1\ntools:\n- {match: '*', effect: read_only, mode: allow, when: \"call.nam == 'x'\"}\n",
        &["policy.yaml:3:59", "did you mean `name`?"],
    );
    says(
        "version: 1\ntriggers: {spec.changed: {when: \"changeset.files\"}}\n",
        &["policy.yaml:2:43", "must be a bool"],
    );
}

#[test]
fn wrong_shapes_are_named() {
    says("version: 1\nrules: {}\n", &["`rules`: expected a list, found a mapping"]);
    says("version: 1\ntools: x\n", &["expected a list, found the text `x`"]);
    says("version: 1\nbudgets: []\n", &["expected a mapping, found a list"]);
    says("version: 1\nverifiers: {a: {run: []}}\n", &["the command is empty"]);
    says("version: 1\nverifiers: {a: {run: '  '}}\n", &["the command is empty"]);
    says("version: 1\nverifiers: {a: {run: {}}}\n", &["a list of arguments or a text"]);
    says("version: 1\nreviews: [{name: rules, quorum: 0}]\n", &["a whole number from 1, or `all`"]);
    says("version: 1\nreviews: [{name: rules, quorum: most}]\n", &["`all`"]);
    says("version: 1\n1: x\n", &["policy.yaml:2:1", "a key must be text"]);
    says("version: 1\n? [a]\n: b\n", &["a key must be text"]);
    says(
        "version: 1\ntests: [{name: a, given: {round: {nn: 1}}, expect: {rule: approved, action: continue}}]\n",
        &["unknown field `nn`"],
    );
    says(
        "version: 1\ntests: [{name: a, given: {call: {args: {a: 1.5}}}, expect: {rule: a, action: block}}]\n",
        &["1.5"],
    );
}

#[test]
fn no_bytes_make_the_loader_panic() {
    use proptest::prelude::*;
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 200, ..ProptestConfig::default() });
    let words = prop::sample::select(vec![
        "version: 1",
        "rules:",
        "- ",
        "  ",
        "\n",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "&a",
        "*a",
        "<<",
        "!!str",
        "|",
        ">",
        "'",
        "\"",
        "when: ",
        "round.n",
        "tools",
        "é",
        "\u{feff}",
        "\t",
        "---",
        "...",
        "#",
        "? ",
        "0x1",
        "~",
    ]);
    let texts = prop::collection::vec(words, 0..40).prop_map(|parts| parts.concat());
    runner
        .run(&texts, |text| {
            let _ = load_text("policy.yaml", text.as_bytes());
            Ok(())
        })
        .unwrap();
}
