//! The shapes of common credentials, in packs.
//!
//! A pattern is a regex over bytes. Where it has a group named `secret` only that part is a secret. What a regex can't
//! say (that a token holds a digit, so that it is no ordinary word) its `plausible` function says. No pattern but the
//! private keys goes over the end of a line: [`super::Stream`] relies on that.

/// One shape.
pub(super) struct Shape {
    pub(super) pack: &'static str,
    pub(super) id: &'static str,
    pub(super) regex: &'static str,
    pub(super) plausible: fn(&[u8]) -> bool,
}

const fn shape(pack: &'static str, id: &'static str, regex: &'static str, plausible: fn(&[u8]) -> bool) -> Shape {
    Shape { pack, id, regex, plausible }
}

/// All shapes. Where two match at the same place, the longer match wins, then the earlier shape.
pub(super) const SHAPES: &[Shape] = &[
    // Keys of services, which announce themselves by a prefix.
    shape("keys", "anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}", any),
    shape(
        "keys",
        "openai-key",
        r"\bsk-(?:[A-Za-z0-9]{20,}|(?:proj|svcacct|admin|or-v1|lf)-[A-Za-z0-9_-]{16,})",
        has_digit,
    ),
    shape("keys", "github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", any),
    shape("keys", "gitlab-token", r"\bgl(?:pat|dt|rt|ptt|soat|cbt|ft)-[A-Za-z0-9_.-]{20,}", any),
    shape("keys", "slack-token", r"\bxox[abceoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}", has_digit),
    shape("keys", "aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", any),
    shape(
        "keys",
        "aws-secret-key",
        concat!(
            r"(?i)\baws_?(?:secret_?access_?key|session_?token)",
            r#"["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?P<secret>[A-Za-z0-9/+=]{40,})"#
        ),
        any,
    ),
    shape("keys", "google-key", r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}", any),
    shape("keys", "stripe-key", r"\b(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}", any),
    shape(
        "keys",
        "registry-token",
        concat!(
            r"\bnpm_[A-Za-z0-9]{36}|\bpypi-AgE[A-Za-z0-9_-]{40,}|\bcio[A-Za-z0-9]{32}\b",
            r"|\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}|\brubygems_[a-f0-9]{48}"
        ),
        has_digit,
    ),
    shape(
        "keys",
        "model-host-token",
        r"\b(?:hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{36,}|pplx-[A-Za-z0-9]{40,})",
        has_digit,
    ),
    shape(
        "keys",
        "cloud-token",
        concat!(
            r"\bdo[opr]_v1_[a-f0-9]{64}|\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,}|\bhvs\.[A-Za-z0-9_-]{24,}",
            r"|\bdapi[a-f0-9]{32}\b|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}|\bnvapi-[A-Za-z0-9_-]{40,}"
        ),
        any,
    ),
    // Tokens that are recognised by where they stand.
    shape("tokens", "jwt", r"\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}", any),
    shape(
        "tokens",
        "authorization-header",
        concat!(
            r#"(?i)\bauthorization["']?[ \t]{0,8}[:=][ \t]{0,8}["']?"#,
            r"(?:basic|bearer|token|apikey|bot|negotiate|digest|aws4-hmac-sha256)[ \t]+",
            r#"(?P<secret>(?:credential|username|realm|nonce)=[^\r\n]+|[A-Za-z0-9._~+/=-]{6,})"#
        ),
        credential,
    ),
    shape(
        "tokens",
        "authorization-header",
        r#"(?i)\bauthorization["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?P<secret>[A-Za-z0-9._~+/=-]{16,})"#,
        mixed,
    ),
    shape("tokens", "bearer-token", r"(?i)\bbearer[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{12,}=*)", has_digit),
    shape(
        "tokens",
        "api-key-header",
        concat!(
            r"(?i)\b(?:x-[a-z-]{0,32}(?:key|token|secret)|api-key|private-token|job-token)",
            r#"["']?[ \t]{0,8}:[ \t]{0,8}["']?(?P<secret>[A-Za-z0-9._~+/=-]{12,})"#
        ),
        has_digit,
    ),
    shape(
        "tokens",
        "cookie-header",
        r#"(?i)\b(?:set-)?cookie["']?:[ \t]{0,8}["']?(?P<secret>[A-Za-z0-9_.-]+=[^\r\n"']{8,})"#,
        has_digit,
    ),
    // Credentials inside URLs.
    shape(
        "urls",
        "url-password",
        r#"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/?#:@"'<>`\[]*:(?P<secret>[^\s/?#"'<>`]+)@"#,
        not_a_placeholder,
    ),
    shape("urls", "url-token", r"://(?P<secret>[A-Za-z0-9_-]{20,})@", has_digit),
    shape(
        "urls",
        "url-parameter",
        concat!(
            r"(?i)[?&](?:access_token|refresh_token|id_token|api_?key|auth_token|token|client_secret|secret|password",
            r#"|sig|signature|x-amz-signature|x-amz-security-token)=(?P<secret>[^\s&"'#<>`]{8,})"#
        ),
        mixed,
    ),
    shape(
        "urls",
        "webhook",
        concat!(
            r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)",
            r"/(?P<secret>[A-Za-z0-9/_-]{20,})"
        ),
        any,
    ),
    // Private keys, whole or with one end cut off (where output was larger than its cap), also inside strings and diffs.
    shape(
        "pem",
        "private-key",
        concat!(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
            r"(?:(?:[\r\n]|\\[rn])+[A-Za-z-]{1,30}: [^\r\n\\]*)*",
            r#"(?:[A-Za-z0-9+/="'\s]|\\[rn]|\n-[A-Za-z0-9+/])*"#,
            r"(?:-?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
        any,
    ),
    shape(
        "pem",
        "private-key",
        concat!(
            r"(?:[A-Za-z0-9+/=]{16,}[ \t]*\r?\n)+(?:[A-Za-z0-9+/=]+[ \t]*\r?\n)?",
            r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        ),
        any,
    ),
    // Values of variables whose names say what they are.
    shape(
        "assignments",
        "secret-variable",
        concat!(
            r"\b[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY)",
            r#"=["']?(?P<secret>[^\s"'$<{(`\[][^\s"'`]{7,})"#
        ),
        not_a_placeholder,
    ),
    shape(
        "assignments",
        "secret-literal",
        concat!(
            r"(?i)\b[a-z0-9_.-]*(?:secret|token|password|passwd|api_?-?key|access_?-?key|private_?-?key)",
            r#"["']?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}["'](?P<secret>[^\s"'<>{}$()]{8,})["']"#
        ),
        mixed,
    ),
];

fn any(_: &[u8]) -> bool {
    true
}

fn has_digit(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
}

/// Letters and digits: no word, no number.
fn mixed(secret: &[u8]) -> bool {
    has_digit(secret) && secret.iter().any(u8::is_ascii_alphabetic) && not_a_placeholder(secret)
}

/// What follows a scheme in a header: anything but a word of a sentence.
fn credential(secret: &[u8]) -> bool {
    let capitals_inside = secret.iter().skip(1).any(u8::is_ascii_uppercase);
    has_digit(secret) || capitals_inside || secret.contains(&b'=') || secret.len() >= 24
}

/// `$PASSWORD`, `${PASSWORD}`, `{password}`, `%s`, `****`: where a secret will be put, or was taken out.
fn not_a_placeholder(secret: &[u8]) -> bool {
    let is_reference =
        secret.starts_with(b"$") && secret[1..].iter().all(|b| b.is_ascii_alphanumeric() || b"_{}()".contains(b));
    let is_template = secret.starts_with(b"{") && secret.ends_with(b"}");
    let is_masked = secret.iter().all(|b| *b == b'*' || *b == b'.' || *b == b'x' || *b == b'X');
    !(is_reference || is_template || is_masked || secret == b"%s" || secret.starts_with(b"[redacted:"))
}
