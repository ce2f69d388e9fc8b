//! Matching paths against ignore files: the innermost file with an opinion decides.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use checkrein_shared::tree::RelPath;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::RuleFile;

/// Compiled ignore files, by their directory from the repository's top.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    prefix: Option<RelPath>,
    files: BTreeMap<Option<RelPath>, Vec<Gitignore>>,
}

impl Matcher {
    pub(super) fn new(prefix: Option<&RelPath>, files: &[RuleFile]) -> Self {
        let mut matcher = Self { prefix: prefix.cloned(), files: BTreeMap::new() };
        for file in files {
            matcher.add(file);
        }
        matcher
    }

    pub(super) fn add(&mut self, file: &RuleFile) {
        let mut builder = GitignoreBuilder::new("");
        for line in &file.lines {
            if let Err(error) = builder.add_line(None, line) {
                // As in git, a pattern that can't be understood matches nothing: more files count, never fewer.
                tracing::warn!(%line, %error, "an ignore rule is left out");
            }
        }
        match builder.build() {
            Ok(compiled) => self.files.entry(file.directory.clone()).or_default().push(compiled),
            Err(error) => tracing::warn!(%error, "an ignore file is left out"),
        }
    }

    /// Whether a path of the workspace is ignored, given that no directory above it is.
    pub(super) fn is_ignored(&self, path: &RelPath, is_directory: bool) -> bool {
        let full = match &self.prefix {
            None => path.clone(),
            // A path too long to be joined is too long for any rule.
            Some(prefix) => match RelPath::from_bytes([prefix.as_bytes(), b"/", path.as_bytes()].concat()) {
                Ok(full) => full,
                Err(_) => return false,
            },
        };
        let directories = full.ancestors().map(Some).chain([None]);
        for directory in directories {
            let Some(files) = self.files.get(&directory) else { continue };
            let skip = directory.as_ref().map_or(0, |d| d.as_bytes().len() + 1);
            let tail = Path::new(OsStr::from_bytes(&full.as_bytes()[skip..]));
            for file in files {
                match file.matched(tail, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
        }
        false
    }
}
