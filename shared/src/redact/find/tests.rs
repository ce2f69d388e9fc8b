//! What is a secret and what only looks like one.

use std::sync::LazyLock;

use super::*;
use crate::redact::{Builder, Secret};

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Builder::new().all_packs().build());

/// `text` with the secret marked by `«` and `»`: exactly that part must be replaced by the pattern.
fn check(pattern: &str, marked: &str) {
    let text = marked.replace(['«', '»'], "");
    let (before, rest) = marked.split_once('«').unwrap();
    let (_, after) = rest.split_once('»').unwrap();
    let (shown, counts) = REDACTOR.redact_text(&text);
    assert_eq!(shown, format!("{before}[redacted:{pattern}]{after}"), "{marked}");
    assert_eq!(counts, BTreeMap::from([(pattern.to_owned(), 1)]), "{marked}");
    // Redacting again changes nothing, so it does not matter how often it is done.
    assert_eq!(REDACTOR.redact_text(&shown).0, shown);
}

#[test]
fn every_kind_of_credential_is_replaced() {
    // Assembled here, so that scanners of this repository find no key in it.
    let tail = "0123456789abcdefABCDEF0123456789abcdefAB";
    let long = format!("{tail}{tail}");
    for (pattern, prefix, length) in [
        ("anthropic-key", "sk-ant-api03-", 40),
        ("openai-key", "sk-", 40),
        ("openai-key", "sk-proj-", 40),
        ("github-token", "ghp_", 36),
        ("github-token", "gho_", 36),
        ("github-token", "ghu_", 36),
        ("github-token", "ghs_", 36),
        ("github-token", "ghr_", 36),
        ("github-token", "github_pat_", 40),
        ("gitlab-token", "glpat-", 20),
        ("slack-token", "xoxb-", 30),
        ("slack-token", "xoxp-", 30),
        ("google-key", "AIza", 35),
        ("stripe-key", "sk_live_", 24),
        ("registry-token", "npm_", 36),
        ("model-host-token", "hf_", 34),
        ("cloud-token", "SG.0123456789abcdefghijkl.", 43),
    ] {
        check(pattern, &format!("key=«{prefix}{}» end", &long[..length]));
        check(pattern, &format!("\"«{prefix}{}»\",", &long[..length]));
    }
    check("aws-access-key", &format!("id «AKIA{}»", "ABCDEFGHIJKLMNOP"));
    check("aws-secret-key", &format!("aws_secret_access_key = «{tail}»"));
}

#[test]
fn tokens_are_recognised_by_where_they_stand() {
    check("jwt", "t «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl» x");
    check("authorization-header", "Authorization: Basic «dXNlcjpwYXNzd29yZA==»");
    check("authorization-header", "authorization: Bearer «abc123»\r\n");
    check("authorization-header", "-H 'Authorization: token «0123456789abcdef0123»'");
    check("authorization-header", "\"Authorization\": \"Bearer «opaque-value-without-any-digits»\"");
    check("authorization-header", "Authorization: «0123456789abcdef0123»");
    check("authorization-header", "Authorization: Digest «username=\"me\", response=\"0123\"»");
    check("bearer-token", "sent Bearer «abcdefghij0123456789» to it");
    check("api-key-header", "x-api-key: «0123456789abcdef»");
    check("api-key-header", "{\"x-goog-api-key\": \"«0123456789abcdef»\"}");
    check("cookie-header", "Set-Cookie: «session=0123456789; HttpOnly»");
    check("secret-variable", "export DB_PASSWORD=«correct-horse»");
    check("secret-variable", "GITHUB_TOKEN='«abcdefgh»'");
    check("secret-literal", "  \"client_secret\": \"«s3cr3t-value»\",");
    check("secret-literal", "password = '«hunter2hunter2»'");
}

#[test]
fn credentials_in_urls_are_replaced() {
    check("url-password", "amqp://user:«pass»@host:5672/%2f");
    check("url-password", "postgres://u:«p@ss:w»@db/x");
    check("url-password", "redis://:«secret»@cache:6379");
    check("url-password", "https://x-access-token:«0123456789»@github.com/a/b.git");
    check("url-token", "https://«0123456789abcdef0123»@example.com");
    check("url-parameter", "GET /x?a=1&access_token=«0123456789abc»&b=2");
    check("webhook", "https://hooks.slack.com/services/«T00000000/B00000000/XXXXXXXX»");
}

#[test]
fn private_keys_are_replaced_whole_or_cut() {
    let body = "MIIEowIBAAKCAQEAx1MIIEowIBAAKCAQEAx1MIIEowIBAAKCAQEAx1MIIEowIBA=\n".repeat(3);
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        check(
            "private-key",
            &format!("a\n«-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----»\nb"),
        );
    }
    check(
        "private-key",
        &format!("a: «-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----»\"}}", "MIIEowIBAAKCAQ"),
    );
    check("private-key", &format!("a\n«-----BEGIN PRIVATE KEY-----\n{body}»"));
    check("private-key", &format!("«{body}-----END PRIVATE KEY-----»\nb"));
    let encrypted = format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{body}");
    check("private-key", &format!("«-----BEGIN RSA PRIVATE KEY-----\n{encrypted}-----END RSA PRIVATE KEY-----»\n"));
    check(
        "private-key",
        &format!("«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}-----END PGP PRIVATE KEY BLOCK-----»"),
    );
}

#[test]
fn near_misses_stay() {
    for text in [
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "123e4567-e89b-12d3-a456-426614174000",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "checksum = \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
        "<div class=\"sk-fading-circle sk-spinner-container-wrapper\">",
        "the risk-assessment0123456789abcdefghij of disk-0123456789abcdefghij0",
        "AKIAabcdefghijklmnop AKIA1234",
        "ghp_short github_pat_ gho_",
        "the bearer of bad news; Bearer authentication is required",
        "Authorization: Bearer $TOKEN and Authorization: Bearer <token>",
        "Authorization: Basic auth is used here",
        "authorization: Option<String>,",
        "http://localhost:8080/path@version and https://example.com:443/@scope/pkg",
        "postgres://user:${PASSWORD}@db and amqp://{user}:{password}@host",
        "git@github.com:owner/repository.git",
        "token = parse_token(input); let password = read_password()?;",
        "password: str, api_key: &str, TOKEN=$(cat token) API_KEY=${KEY} max_tokens=4096",
        "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAx1\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIEowIBAAKCAQEAx1\n-----END PUBLIC KEY-----",
        "eyJ is how base64 of a JSON object begins; eyJhbGciOiJIUzI1NiJ9 alone is none",
        "?page=12345678&sort=ascending&token=",
    ] {
        assert_eq!(REDACTOR.find(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn known_values_are_found_by_value_wherever_they_stand() {
    let redactor = Builder::new().known("API_KEY", &Secret::new("hunter2hunter2\n")).build();
    let body = "401: the key hunter2hunter2 is not valid; session=hunter2hunter2,error=xhunter2hunter2y";
    let redacted = redactor.redact(body.as_bytes());
    assert_eq!(redacted.counts, BTreeMap::from([("value.API_KEY".to_owned(), 3)]));
    assert!(!String::from_utf8(redacted.bytes).unwrap().contains("hunter2"));
    assert!(!format!("{redactor:?}").contains("hunter2"));
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let text = b"\xff\0sk-ant-api03-0123456789abcdef\xfe\n";
    assert_eq!(REDACTOR.redact(text).bytes, b"\xff\0[redacted:anthropic-key]\xfe\n");
}

#[test]
fn overlapping_hits_become_one() {
    let redactor = Builder::new().extra("a", "abc").unwrap().extra("b", "bcde").unwrap().build();
    let hits = redactor.find(b"xabcdex");
    assert_eq!(hits, [Hit { pattern: "a".to_owned(), range: 1..6 }]);
}

#[test]
fn extra_patterns_keep_to_a_line_and_may_name_the_secret() {
    let redactor = Builder::new().extra("cust", r"cust=(?P<secret>[^;]+)").unwrap().build();
    assert_eq!(redactor.redact(b"cust=17;\ncust=1\n2").bytes, b"cust=[redacted:cust];\ncust=[redacted:cust]\n2");
}

#[test]
fn what_is_cut_by_a_gap_is_left_out() {
    let text = b"first\nkey sk-ant-api0301234567\nlast\n";
    let gap = text.windows(3).position(|w| w == b"api").unwrap();
    let (redacted, lost) = REDACTOR.redact_around_gap(text, gap, "[... 9 bytes dropped]");
    assert_eq!(String::from_utf8(redacted.bytes).unwrap(), "first\n[... 9 bytes dropped]\nlast\n");
    assert_eq!(lost, 25);
    let (redacted, lost) = REDACTOR.redact_around_gap(b"no line at all", 5, "gap");
    assert_eq!((redacted.bytes.as_slice(), lost), (&b"gap\n"[..], 14));
}
