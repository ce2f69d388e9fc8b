//! Puts a redactor together from packs, regexes of a policy, and known values.

use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};

use super::find::{Pattern, Redactor};
use super::known::{Known, VALUE_BYTES_MIN};
use super::packs::SHAPES;
use super::secret::Secret;

/// The names of the packs.
pub const PACKS: [&str; 5] = ["keys", "tokens", "urls", "pem", "assignments"];

const REGEX_BYTES_MAX: usize = 1024;
const PROGRAM_BYTES_MAX: usize = 4 << 20;
const EXTRA_MAX: usize = 200;
const ID_BYTES_MAX: usize = 64;

/// Why a redactor can't be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such pack.
    #[error("there is no redaction pack `{name}`: the packs are {}", PACKS.join(", "))]
    UnknownPack {
        /// The name that was asked for.
        name: String,
    },
    /// The id of a pattern can't stand in a replacement.
    #[error("`{id}` can't be the id of a redaction pattern: use 1 to {ID_BYTES_MAX} of a-z, 0-9, `.`, `_` and `-`")]
    BadId {
        /// The id.
        id: String,
    },
    /// The regex of a pattern is unusable.
    #[error("the redaction pattern `{id}` is unusable: {reason}")]
    BadRegex {
        /// The id of the pattern.
        id: String,
        /// Why, with the place in the regex where there is one.
        reason: String,
    },
    /// There are too many patterns.
    #[error("there are more than {EXTRA_MAX} redaction patterns")]
    TooMany,
}

/// Collects what a [`Redactor`] looks for. What is added twice counts once, so the redaction of two policies is their
/// union.
#[derive(Debug, Default)]
pub struct Builder {
    packs: BTreeSet<&'static str>,
    extra: Vec<Pattern>,
    known: Known,
}

impl Builder {
    /// Looks for nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pack.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownPack`].
    pub fn pack(mut self, name: &str) -> Result<Self, Error> {
        let pack = PACKS.iter().find(|pack| **pack == name);
        self.packs.insert(pack.ok_or_else(|| Error::UnknownPack { name: name.to_owned() })?);
        Ok(self)
    }

    /// Adds all packs.
    #[must_use]
    pub fn all_packs(mut self) -> Self {
        self.packs.extend(PACKS);
        self
    }

    /// Adds a regex. It is applied to one line at a time; where it has a group named `secret`, only that is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::BadId`], [`Error::BadRegex`], [`Error::TooMany`].
    pub fn extra(mut self, id: &str, regex: &str) -> Result<Self, Error> {
        let is_id_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(is_id_byte) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        let compiled = compile(regex).map_err(|reason| Error::BadRegex { id: id.to_owned(), reason })?;
        if self.extra.iter().any(|known| known.id == id && known.regex.as_str() == regex) {
            return Ok(self);
        }
        if self.extra.len() == EXTRA_MAX {
            return Err(Error::TooMany);
        }
        self.extra.push(Pattern { id: id.to_owned(), regex: compiled, plausible: |_| true, by_line: true });
        Ok(self)
    }

    /// Adds the value of a secret that the task was given under this name. It is found wherever it stands, also
    /// encoded (base64, percent, JSON), and replaced by `[redacted:value.<name>]`.
    ///
    /// A value of fewer than six bytes is not looked for, because it would be found everywhere:
    /// [`Redactor::ignored`] names it.
    #[must_use]
    pub fn known(mut self, name: &str, value: &Secret) -> Self {
        self.known.add(name, value.expose());
        self
    }

    /// Makes the redactor.
    pub fn build(self) -> Redactor {
        let shapes = SHAPES.iter().filter(|shape| self.packs.contains(shape.pack));
        let mut patterns: Vec<Pattern> = shapes
            .map(|shape| Pattern {
                id: shape.id.to_owned(),
                regex: compile_any(shape.regex).expect("every shape's regex compiles, which a test checks"),
                plausible: shape.plausible,
                by_line: false,
            })
            .collect();
        patterns.extend(self.extra);
        Redactor { patterns, known: self.known }
    }
}

fn compile(regex: &str) -> Result<Regex, String> {
    if regex.len() > REGEX_BYTES_MAX {
        return Err(format!("it is longer than {REGEX_BYTES_MAX} bytes"));
    }
    let compiled = compile_any(regex)?;
    if compiled.is_match(b"") {
        return Err("it matches the empty text, so it would match everywhere".to_owned());
    }
    Ok(compiled)
}

fn compile_any(regex: &str) -> Result<Regex, String> {
    // Bytes, not characters: output need not be UTF-8, and `\b` must not depend on what stands before it.
    let built = RegexBuilder::new(regex).unicode(false).size_limit(PROGRAM_BYTES_MAX).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large once compiled: bound its repetitions".to_owned(),
        other => other.to_string(),
    })
}

const _: () = assert!(VALUE_BYTES_MIN == 6, "the documentation of `known` says six");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_patterns_are_refused_with_their_name() {
        let extra = |id: &str, regex: &str| Builder::new().extra(id, regex).map(|_| ()).unwrap_err().to_string();
        assert!(extra("cust", "a(b").contains("`cust`"));
        assert!(extra("cust", "x*").contains("empty"));
        assert!(extra("cust", &"x".repeat(2000)).contains("longer"));
        assert!(extra("cust", "(?:[a-z]{1000}){1000}").contains("too large"));
        for id in ["", "A", "a b", "a]", &"a".repeat(65)] {
            assert!(matches!(Builder::new().extra(id, "x"), Err(Error::BadId { .. })), "{id}");
        }
        assert!(Builder::new().pack("kyes").unwrap_err().to_string().contains("keys, tokens"));
    }

    #[test]
    fn two_policies_make_a_union() {
        let builder = Builder::new().extra("a", "secret[0-9]").unwrap().extra("a", "secret[0-9]").unwrap();
        let redactor = builder.extra("a", "other[0-9]").unwrap().build();
        assert_eq!(redactor.redact(b"secret1 other2").bytes, b"[redacted:a] [redacted:a]");
    }

    #[test]
    fn every_pack_has_shapes_and_every_shape_a_pack() {
        for pack in PACKS {
            assert!(SHAPES.iter().any(|shape| shape.pack == pack), "{pack}");
        }
        for shape in SHAPES {
            assert!(PACKS.contains(&shape.pack), "{}", shape.id);
            assert!(compile_any(shape.regex).is_ok(), "{}", shape.id);
        }
    }
}
