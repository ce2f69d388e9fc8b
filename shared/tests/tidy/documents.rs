//! Documents: links that lead somewhere, walkthroughs that are tests, and the
//! shape of the changelog. Whether they are true is for their readers.

use std::collections::BTreeSet;

use crate::assert_none;
use crate::lexer::{code_only, functions};
use crate::repository::{File, files, root, rust_sources};

/// The most lines of `docs/ARCHITECTURE.md`: it is read in one sitting.
const ARCHITECTURE_LINES_MAX: usize = 200;

fn documents(files: &[File]) -> impl Iterator<Item = (&str, &str)> {
    files.iter().filter_map(|f| f.with_extension("md")).filter(|(path, _)| !path.starts_with("examples/"))
}

/// The lines outside fenced blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

/// The targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchor that a heading gets where documents are shown as pages.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for (path, text) in documents(&files()) {
        for (number, line) in prose(text) {
            for target in links(line).filter(|t| !t.contains("://") && !t.starts_with("mailto:")) {
                let why = check_link(path, text, target);
                broken.extend(why.map(|why| format!("{path}:{number}: `{target}`: {why}")));
            }
        }
    }
    assert_none(broken);
}

fn check_link(path: &str, text: &str, target: &str) -> Option<&'static str> {
    let (file, wanted) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = root().join(path).parent().expect("a file lies in a folder").to_owned();
    let whole = folder.join(file);
    if !file.is_empty() && !whole.exists() {
        return Some("there is no such file");
    }
    let wanted = wanted?;
    let there = if file.is_empty() { text.to_owned() } else { std::fs::read_to_string(whole).unwrap_or_default() };
    (!anchors(&there).contains(wanted)).then_some("there is no such heading")
}

#[test]
fn the_changelog_has_a_place_for_what_is_not_released() {
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changelog.contains("\n## [Unreleased]\n"));
}

#[test]
fn the_architecture_is_short_and_its_walkthroughs_are_tests() {
    let files = files();
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= ARCHITECTURE_LINES_MAX, "docs/ARCHITECTURE.md has {lines} lines");
    let is_walkthrough = |name: &str| name.starts_with("walkthrough_");
    let told: BTreeSet<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| is_walkthrough(w))
        .map(str::to_owned)
        .collect();
    let tests: BTreeSet<String> = rust_sources(&files)
        .into_iter()
        .filter(|(path, _)| path.contains("/tests/"))
        .flat_map(|(_, text)| functions(&code_only(text)))
        .map(|function| function.name)
        .filter(|name| is_walkthrough(name))
        .collect();
    assert!(told.len() >= 2, "docs/ARCHITECTURE.md walks through {told:?} only");
    assert!(tests.is_empty() || told == tests, "docs/ARCHITECTURE.md tells {told:?}; the tests are {tests:?}");
}
