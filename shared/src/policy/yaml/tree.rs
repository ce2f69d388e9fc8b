//! The tree: every node knows its line and column.
//!
//! It is plain data. [`super::parse`] makes it, [`super::read`] reads it.

/// A place in a file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// One step of a path into a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

/// A node and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: Place,
    /// The text as it stands in the file, quotes included; empty for collections.
    pub(crate) raw: String,
    pub(crate) kind: Kind,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool(bool),
    Int(i64),
    Text(String),
    /// A number that is not plain decimal, such as `0x10`, `+5` or `1e3`; `raw` has its spelling.
    OddNumber,
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping, where it stands, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Place,
    pub(crate) value: Node,
}

impl Node {
    /// The node at `path`, if there is one.
    pub(crate) fn find(&self, path: &[Segment]) -> Option<&Node> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let child = match (&self.kind, first) {
            (Kind::Map(entries), Segment::Key(key)) => entries.iter().find(|e| e.key == *key).map(|e| &e.value),
            (Kind::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        };
        child.and_then(|node| node.find(rest))
    }

    /// Removes the node at `path`; false where there is none.
    pub(crate) fn remove(&mut self, path: &[Segment]) -> bool {
        match (path, &mut self.kind) {
            ([Segment::Key(key)], Kind::Map(entries)) => {
                let before = entries.len();
                entries.retain(|e| e.key != *key);
                entries.len() < before
            }
            ([Segment::Index(index)], Kind::List(items)) if *index < items.len() => {
                items.remove(*index);
                true
            }
            ([Segment::Key(key), rest @ ..], Kind::Map(entries)) => {
                entries.iter_mut().find(|e| e.key == *key).is_some_and(|e| e.value.remove(rest))
            }
            ([Segment::Index(index), rest @ ..], Kind::List(items)) => {
                items.get_mut(*index).is_some_and(|item| item.remove(rest))
            }
            _ => false,
        }
    }
}
