//! Parses and checks YAML text: what has no single meaning is refused.
//!
//! It leaves to the reader which keys and types belong where.

use serde_saphyr::{Location, Spanned};

use super::raw::{Raw, Shape};
use super::tree::{Entry, Kind, Node, Place};
use crate::policy::error::Problem;

/// The largest file that is read, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 256 * 1024;
const DEPTH_MAX: usize = 24;
const NODES_MAX: usize = 50_000;
const ALIASES_MAX: usize = 256;
const REPLAYED_MAX: usize = 10_000;

/// Parses one YAML document whose root is a mapping.
///
/// # Errors
///
/// What is not strict YAML, with its place. A byte order mark at the start and
/// CRLF line ends mean nothing; a file without content is an error.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Node, Vec<Problem>> {
    if bytes.len() > FILE_BYTES_MAX {
        let problem = Problem::whole(file, format!("the file is larger than {} KiB", FILE_BYTES_MAX / 1024));
        return Err(vec![problem.hinted("move long texts into files of their own and name them with `file:`")]);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u64;
        let at = Place { line, column: 1 };
        vec![problem(file, at, "the file is not UTF-8 text").hinted("save it as UTF-8")]
    })?;
    let raw: Raw = serde_saphyr::from_str_with_options(text, options()).map_err(|e| vec![syntax(file, &e)])?;
    let mut converter = Converter { file, text, problems: Vec::new() };
    let root = converter.root(raw);
    if converter.problems.is_empty() { root.ok_or_else(Vec::new) } else { Err(converter.problems) }
}

fn options() -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_depth = DEPTH_MAX;
    budget.max_nodes = NODES_MAX;
    budget.max_aliases = ALIASES_MAX;
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        with_snippet: false,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        // The converter finds duplicates itself: it can then name both lines.
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED_MAX },
        budget: Some(budget),
    }
}

fn problem(file: &str, at: Place, message: impl Into<String>) -> Problem {
    Problem { file: file.to_owned(), line: at.line, column: at.column, message: message.into(), hint: None }
}

fn syntax(file: &str, error: &serde_saphyr::Error) -> Problem {
    use serde_saphyr::Error;
    let at = error.location().map(place).unwrap_or_default();
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text).trim().to_owned();
    match error.without_snippet() {
        Error::MultipleDocuments { .. } => {
            problem(file, at, "a second document starts here").hinted("a policy file is one document: remove `---`")
        }
        Error::MergeKeyNotAllowed { .. } => {
            problem(file, at, "merge keys (`<<`) are not allowed").hinted("use `extends`, or write the keys out")
        }
        _ if message.contains("alias") && message.contains("limit") => {
            problem(file, at, "aliases expand to too much").hinted("write the values out")
        }
        Error::Budget { .. } => problem(file, at, format!("the file is too large or too deep: {message}")),
        _ if message.contains("tab") => problem(file, at, message).hinted("indent with spaces"),
        _ => problem(file, at, format!("not valid YAML: {message}")),
    }
}

fn place(location: Location) -> Place {
    Place { line: location.line(), column: location.column() }
}

/// Turns the raw tree into nodes and collects what is wrong on the way.
struct Converter<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl Converter<'_> {
    fn root(&mut self, raw: Raw) -> Option<Node> {
        let at = place(raw.0.referenced);
        match &raw.0.value {
            Shape::Map(_) => self.node(raw, "the file"),
            Shape::Null => self.fail(at, "the file has no content", "a policy needs at least `version: 1`"),
            _ => self.fail(at, "the file is not a mapping of keys to values", "start with `version: 1`"),
        }
    }

    fn fail(&mut self, at: Place, message: impl Into<String>, hint: &str) -> Option<Node> {
        self.problems.push(problem(self.file, at, message).hinted(hint));
        None
    }

    fn node(&mut self, raw: Raw, name: &str) -> Option<Node> {
        let at = place(raw.0.referenced);
        let spelling = self.spelling(&raw.0).to_owned();
        let kind = match raw.0.value {
            Shape::Null => {
                let message = format!("{name} has no value");
                return self.fail(at, message, "give it one, or leave the key out");
            }
            Shape::Bool(value) if spelling == value.to_string() => Kind::Bool(value),
            Shape::Bool(_) => return self.fail(at, format!("`{spelling}` is an odd boolean"), "write true or false"),
            Shape::Int(value) if spelling == value.to_string() => Kind::Int(value),
            Shape::Int(_) | Shape::Odd => Kind::OddNumber,
            Shape::Text(text) => Kind::Text(text),
            Shape::List(items) => {
                let items = items.into_iter().filter_map(|item| self.node(item, "the list item")).collect();
                return Some(Node { at, raw: String::new(), kind: Kind::List(items) });
            }
            Shape::Map(entries) => {
                let kind = Kind::Map(self.entries(entries));
                return Some(Node { at, raw: String::new(), kind });
            }
        };
        Some(Node { at, raw: spelling, kind })
    }

    fn entries(&mut self, raw: Vec<(Raw, Raw)>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::with_capacity(raw.len());
        for (key, value) in raw {
            let at = place(key.0.referenced);
            let Shape::Text(key) = key.0.value else {
                self.fail(at, "a key must be text", "put it in quotes");
                continue;
            };
            if let Some(first) = entries.iter().find(|e| e.key == key) {
                let message = format!("the key `{key}` stands twice, first in line {}", first.at.line);
                self.fail(at, message, "keep one of them");
                continue;
            }
            if let Some(value) = self.node(value, &format!("`{key}`")) {
                entries.push(Entry { key, at, value });
            }
        }
        entries
    }

    /// The text of a scalar as it stands in the file.
    fn spelling<T>(&self, node: &Spanned<T>) -> &str {
        let span = node.defined.span();
        let range = span.byte_offset().zip(span.byte_len());
        range
            .and_then(|(start, len)| {
                let start = usize::try_from(start).ok()?;
                self.text.get(start..start.checked_add(usize::try_from(len).ok()?)?)
            })
            .unwrap_or_default()
    }
}
