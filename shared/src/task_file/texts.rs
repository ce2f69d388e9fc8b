//! Reads the texts that a task file names: specification and constraints.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::error::Problems;
use super::shapes::{self, Source};
use crate::policy::yaml::Place;
use crate::records::{Constraint, SpecText};

/// The largest text that is read from a file, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The most constraints that a task may have.
const CONSTRAINTS_MAX: usize = 200;

/// The specification.
pub(super) fn spec(source: Source, folder: &Path, at: Place, problems: &mut Problems<'_>) -> Option<SpecText> {
    match source {
        Source::Text(text) => {
            filled("the specification", text, at, problems).map(|text| SpecText { spec_ref: "inline".to_owned(), text })
        }
        Source::File(file) => {
            read("the specification", &file, folder, at, problems).map(|text| SpecText { spec_ref: file, text })
        }
    }
}

/// The constraints.
pub(super) fn constraints(
    list: Vec<shapes::Constraint>,
    folder: &Path,
    at: impl Fn(usize, Option<&str>) -> Place,
    problems: &mut Problems<'_>,
) -> Vec<Constraint> {
    if list.len() > CONSTRAINTS_MAX {
        let message = format!("there are {} constraints, more than the {CONSTRAINTS_MAX} that are allowed", list.len());
        problems.add(at(CONSTRAINTS_MAX, None), message, "join some of them in one text");
        return Vec::new();
    }
    let mut found: Vec<Constraint> = Vec::with_capacity(list.len());
    for (index, constraint) in list.into_iter().enumerate() {
        let here = at(index, None);
        let id = constraint.id.trim().to_owned();
        if id.is_empty() || id.chars().any(char::is_control) || found.iter().any(|other| other.id == id) {
            let message = format!("the constraint's id `{}` is empty or used twice", id.escape_debug());
            problems.add(at(index, Some("id")), message, "give each constraint an id of its own");
        }
        if constraint.version == 0 {
            problems.add(at(index, Some("version")), "a constraint's version starts at 1", "write `version: 1`");
        }
        let text = match shapes::source(constraint.text, constraint.file) {
            Ok(Source::Text(text)) => filled("the constraint", text, at(index, Some("text")), problems),
            Ok(Source::File(file)) => read("the constraint", &file, folder, at(index, Some("file")), problems),
            Err(message) => {
                problems.add(here, message, "a constraint needs its text exactly once");
                None
            }
        };
        found.extend(text.map(|text| Constraint { id, version: constraint.version, text }));
    }
    found
}

fn filled(what: &str, text: String, at: Place, problems: &mut Problems<'_>) -> Option<String> {
    if text.trim().is_empty() {
        problems.add(at, format!("{what} is empty"), "write it, or leave the key out");
        return None;
    }
    Some(text)
}

/// Reads a file next to the task file.
fn read(what: &str, file: &str, folder: &Path, at: Place, problems: &mut Problems<'_>) -> Option<String> {
    let path = folder.join(file);
    let mut bytes = Vec::new();
    // Only a plain file: opening a pipe would wait for ever.
    let opened = match path.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            problems.add(at, format!("{what}'s file `{file}` is no plain file"), "name a text file");
            return None;
        }
        Ok(_) => File::open(&path),
        Err(error) => Err(error),
    };
    if let Err(error) = opened.and_then(|handle| handle.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)) {
        let hint = "paths in a task file are relative to its own folder";
        problems.add(at, format!("{what}'s file `{file}` can't be read: {error}"), hint);
        return None;
    }
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        problems.add(at, format!("{what}'s file `{file}` is larger than 1 MiB"), "name a shorter text");
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => filled(what, text, at, problems),
        Err(_) => {
            problems.add(at, format!("{what}'s file `{file}` is not UTF-8 text"), "save it as UTF-8");
            None
        }
    }
}
