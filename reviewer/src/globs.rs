//! Patterns over paths of a tree, with the meaning that they have in policies:
//! `*` stays within a component, `**` crosses them.

use checkrein_shared::tree::RelPath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of patterns, and how it was written.
#[derive(Debug, Clone)]
pub(crate) struct Globs {
    written: Vec<String>,
    set: GlobSet,
}

impl Globs {
    /// Compiles patterns.
    pub(crate) fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, globset::Error> {
        let mut builder = GlobSetBuilder::new();
        let mut written = Vec::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            builder.add(GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build()?);
            written.push(pattern.to_owned());
        }
        Ok(Self { written, set: builder.build()? })
    }

    /// Patterns that stand in this source code.
    pub(crate) fn known(patterns: &[&str]) -> Self {
        Self::new(patterns).expect("patterns in this source code compile, as its tests show")
    }

    /// Whether a path matches one of them.
    pub(crate) fn matches(&self, path: &RelPath) -> bool {
        self.set.is_match(path.as_path())
    }

    /// The patterns as written.
    pub(crate) fn written(&self) -> &[String] {
        &self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_component_and_double_stars_do_not() {
        let path = |text: &str| text.parse::<RelPath>().unwrap();
        let globs = Globs::new(["src/*.rs", "**/tests/**"]).unwrap();
        for yes in ["src/a.rs", "tests/a", "x/tests/y/z"] {
            assert!(globs.matches(&path(yes)), "{yes}");
        }
        for no in ["src/a/b.rs", "tests", "mytests/a"] {
            assert!(!globs.matches(&path(no)), "{no}");
        }
    }
}
