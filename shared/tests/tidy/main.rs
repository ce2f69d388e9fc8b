//! Taste as a test: sizes, layout, leftovers and links of every file in the
//! repository. It reads files only; what the code does is tested elsewhere.
//!
//! There are no exceptions to list: a file or function that is too large is
//! split by idea, and a leftover becomes an issue.

mod documents;
mod layout;
mod lexer;
mod repository;
mod sources;

/// Fails with every violation at once, so that one run shows all the work.
fn assert_none(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}
