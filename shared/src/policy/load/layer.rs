//! One policy file, read but not yet merged.

use std::path::PathBuf;

use crate::digest::Digest;
use crate::policy::error::Problem;
use crate::policy::file::PolicyFile;
use crate::policy::resolved::{Origin, When};
use crate::policy::yaml::{self, Node, NodeError, Place, Segment};

/// The most problems of one file that are listed.
const PROBLEMS_MAX: usize = 20;

/// A file and what is needed to say where in it something stands.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    /// What problems call the file: as the user named it.
    pub(crate) shown: String,
    /// What origins call the file: the same wherever the policy's folder is.
    pub(crate) name: String,
    /// The folder that relative paths start from; `None` for a text without one.
    pub(crate) folder: Option<PathBuf>,
    /// Its name, where it is built in.
    pub(crate) built_in: Option<&'static str>,
    pub(crate) digest: Digest,
    pub(crate) file: PolicyFile,
    root: Node,
}

impl Layer {
    /// Reads a file's bytes.
    pub(crate) fn read(shown: &str, name: &str, folder: Option<PathBuf>, bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let root = yaml::parse(shown, bytes)?;
        let file = read_file(shown, root.clone())?;
        if file.version != 1 {
            let at = root.find(&[Segment::Key("version".to_owned())]).map(|node| node.at).unwrap_or_default();
            let message = format!("version {} is not known", file.version);
            return Err(vec![problem(shown, at, message).hinted("this build reads version 1")]);
        }
        Ok(Self {
            shown: shown.to_owned(),
            name: name.to_owned(),
            folder,
            built_in: None,
            digest: Digest::of(bytes),
            file,
            root,
        })
    }

    /// Where the value at `path` stands; the start of the file where there is none.
    pub(crate) fn origin(&self, path: &[Segment]) -> Origin {
        let at = self.root.find(path).map_or(Place { line: 1, column: 1 }, |node| node.at);
        Origin { file: self.name.clone(), line: at.line, column: at.column }
    }

    /// Where a key stands.
    pub(crate) fn key_origin(&self, section: &str, key: &str) -> Origin {
        let found = match self.root.find(&[Segment::Key(section.to_owned())]).map(|node| &node.kind) {
            Some(yaml::Kind::Map(entries)) => entries.iter().find(|entry| entry.key == key).map(|entry| entry.at),
            _ => None,
        };
        let at = found.unwrap_or(Place { line: 1, column: 1 });
        Origin { file: self.name.clone(), line: at.line, column: at.column }
    }

    /// The keys of a section, in the order of the file.
    pub(crate) fn keys(&self, section: &str) -> Vec<&str> {
        match self.root.find(&[Segment::Key(section.to_owned())]).map(|node| &node.kind) {
            Some(yaml::Kind::Map(entries)) => entries.iter().map(|entry| entry.key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// A condition with its place.
    pub(crate) fn when(&self, source: &str, path: &[Segment]) -> When {
        When { source: source.to_owned(), origin: self.origin(path) }
    }

    /// A problem at an origin of this file.
    pub(crate) fn problem(&self, origin: &Origin, message: impl Into<String>) -> Problem {
        problem(&self.shown, Place { line: origin.line, column: origin.column }, message)
    }

    /// Where the byte `offset` of an expression that starts at `when`'s origin stands.
    pub(crate) fn locate(&self, when: &When, offset: usize) -> Option<Origin> {
        let node = scalar_at(&self.root, Place { line: when.origin.line, column: when.origin.column })?;
        let at = yaml::locate(node, &when.source, offset);
        Some(Origin { file: self.name.clone(), line: at.line, column: at.column })
    }
}

/// The scalar that starts at a place.
fn scalar_at(node: &Node, at: Place) -> Option<&Node> {
    match &node.kind {
        yaml::Kind::List(items) => items.iter().find_map(|item| scalar_at(item, at)),
        yaml::Kind::Map(entries) => entries.iter().find_map(|entry| scalar_at(&entry.value, at)),
        _ => (node.at == at).then_some(node),
    }
}

/// Reads the whole file; on a problem leaves out what has it and reads on, so that all are found.
fn read_file(shown: &str, mut root: Node) -> Result<PolicyFile, Vec<Problem>> {
    let mut problems = Vec::new();
    loop {
        match yaml::read::<PolicyFile>(&root) {
            Ok(file) if problems.is_empty() => return Ok(file),
            Ok(_) => return Err(problems),
            Err(error) => {
                problems.push(reported(shown, &error));
                if problems.len() == PROBLEMS_MAX || !root.remove(removable(&error)) {
                    return Err(problems);
                }
            }
        }
    }
}

fn reported(shown: &str, error: &NodeError) -> Problem {
    let path = error.path_text();
    let unknown_key = error.message.starts_with("unknown key");
    let message = if path.is_empty() || unknown_key { error.message.clone() } else { format!("`{path}`: {error}") };
    Problem { hint: error.hint.clone(), ..problem(shown, error.at.unwrap_or_default(), message) }
}

/// What to leave out: an unknown key alone, else the whole item, which would only lack the rest.
fn removable(error: &NodeError) -> &[Segment] {
    const ITEM: usize = 2;
    if error.message.starts_with("unknown key") { &error.path } else { &error.path[..error.path.len().min(ITEM)] }
}

fn problem(shown: &str, at: Place, message: impl Into<String>) -> Problem {
    Problem { file: shown.to_owned(), line: at.line, column: at.column, message: message.into(), hint: None }
}
