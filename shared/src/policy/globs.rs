//! Globs over paths and over tool names.
//!
//! In paths `*` stays within a folder and `**` crosses folders; in tool names
//! `*` matches anything. Matching takes linear time.

use globset::{GlobBuilder, GlobMatcher};

/// The longest pattern, in bytes.
const BYTES_MAX: usize = 512;

/// A pattern over workspace paths.
pub(crate) fn path(pattern: &str) -> Result<GlobMatcher, String> {
    build(pattern, true)
}

/// A pattern over tool names.
pub(crate) fn tool(pattern: &str) -> Result<GlobMatcher, String> {
    build(pattern, false)
}

/// Whether any of these patterns matches a path. A pattern that is no glob matches nothing; the loader
/// has refused it.
pub fn any_glob(patterns: &[String], at: &str) -> bool {
    patterns.iter().any(|pattern| path(pattern).is_ok_and(|glob| glob.is_match(at)))
}

fn build(pattern: &str, folders: bool) -> Result<GlobMatcher, String> {
    if pattern.is_empty() {
        return Err("the glob is empty".to_owned());
    }
    if pattern.len() > BYTES_MAX {
        return Err(format!("the glob is longer than {BYTES_MAX} bytes"));
    }
    if folders && (pattern.starts_with('/') || pattern.starts_with("./")) {
        return Err(format!("`{pattern}` never matches: paths are relative to the workspace and start with a name"));
    }
    let built = GlobBuilder::new(pattern).literal_separator(folders).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| format!("`{pattern}` is not a glob: {}", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_folder_of_a_path_but_not_of_a_tool_name() {
        assert!(path("docs/*").unwrap().is_match("docs/a"));
        assert!(!path("docs/*").unwrap().is_match("docs/a/b"));
        assert!(path("docs/**").unwrap().is_match("docs/a/.b"));
        assert!(path("**/src/test/**").unwrap().is_match("src/test/A.java"));
        assert!(!path("docs/**").unwrap().is_match("docs2/a"));
        assert!(tool("*").unwrap().is_match("mcp:a/b"));
        assert!(tool("mcp:payments/*").unwrap().is_match("mcp:payments/transfer"));
    }

    #[test]
    fn patterns_that_are_wrong_or_never_match_are_refused() {
        for bad in ["", "/etc/**", "./docs", "a[", "{a", &"a".repeat(600)] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
