//! Strict YAML: text in, a tree of located nodes out, and a serde reader of it.
//!
//! What two readers could understand differently is refused: duplicate and
//! merge keys, empty values, odd spellings of numbers and booleans, tags,
//! several documents. This module does not know what a policy is.

mod de;
mod parse;
mod place;
mod raw;
mod tree;

pub(crate) use de::{NodeError, read};
pub(crate) use parse::{FILE_BYTES_MAX, parse};
pub(crate) use place::locate;
pub(crate) use tree::{Kind, Node, Place, Segment};
