//! What the names of rules, reviews, verifiers and levels may look like.

/// The longest name, in bytes.
const BYTES_MAX: usize = 64;

/// What to tell someone whose name was refused.
pub(crate) const RULE: &str = "a name starts with a letter or digit and has at most 64 letters, digits, `.`, `_`, `-`";

/// Whether `name` can name something in a policy.
pub(crate) fn is_valid(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= BYTES_MAX
        && bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
