//! Loads policies: by name from those that are built in, or from files.
//!
//! A policy that has any problem does not load. Nothing here falls back to
//! another policy: keeping the last good one is the caller's decision.

mod chain;
mod constraint;
mod layer;
mod source;

use std::path::Path;

pub(crate) use layer::Layer;
pub use source::{BUILT_IN, built_in};

use super::error::PolicyError;
use super::merge;
use super::resolved::ResolvedPolicy;

/// Loads a built-in policy: `default` or `strict`.
///
/// # Errors
///
/// A name that is not built in.
pub fn load_named(name: &str) -> Result<ResolvedPolicy, PolicyError> {
    merge::resolve(&chain::from_name(name)?)
}

/// Loads a policy file and everything that it extends.
///
/// # Errors
///
/// Every problem that was found, with file, line and column.
pub fn load_file(path: &Path) -> Result<ResolvedPolicy, PolicyError> {
    merge::resolve(&chain::from_file(path)?)
}

/// Loads a policy from text; `name` is what problems call it. It can extend built-in policies only.
///
/// # Errors
///
/// As [`load_file`].
pub fn load_text(name: &str, text: &[u8]) -> Result<ResolvedPolicy, PolicyError> {
    merge::resolve(&chain::from_text(name, text)?)
}
