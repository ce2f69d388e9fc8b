//! Tests of the differences of trees.

use super::super::memory::{file, file_with, link, manifest, path, tree};
use super::*;

fn summary(old: &Manifest, new: &Manifest) -> Vec<String> {
    let changes = Changeset::between(old, new);
    let again = Changeset::parse(&changes.to_bytes()).unwrap();
    assert_eq!(again, changes);
    let from = |c: &Change| c.from.as_ref().map(|p| format!("{p} -> ")).unwrap_or_default();
    changes.changes().iter().map(|c| format!("{:?} {}{}", c.kind, from(c), c.path)).collect()
}

#[test]
fn every_kind_of_change_is_named() {
    let old = manifest(&[
        ("gone", file("1")),
        ("link", link("a")),
        ("mode", file("2")),
        ("moved/x", file("3")),
        ("same", file("4")),
        ("text", file("5")),
        ("type", file("6")),
    ]);
    let new = manifest(&[
        ("elsewhere/x", file_with("3", 0o755)),
        ("fresh", file("7")),
        ("link", link("b")),
        ("mode", file_with("2", 0o755)),
        ("same", file("4")),
        ("text", file("changed")),
        ("type", link("text")),
    ]);
    let expected = [
        "Renamed moved/x -> elsewhere/x",
        "Added fresh",
        "Deleted gone",
        "Modified link",
        "ModeChanged mode",
        "Modified text",
        "TypeChanged type",
    ];
    assert_eq!(summary(&old, &new), expected);
    assert!(summary(&old, &old).is_empty());
}

#[test]
fn renames_prefer_the_same_name_and_never_pair_empty_files() {
    let old = tree(&[("a/one", "same"), ("a/two", "same"), ("empty", "")]);
    let new = tree(&[("b/one", "same"), ("b/two", "same"), ("b/zero", "same"), ("void", "")]);
    let expected = ["Renamed a/one -> b/one", "Renamed a/two -> b/two", "Added b/zero", "Deleted empty", "Added void"];
    assert_eq!(summary(&old, &new), expected);
}

#[test]
fn a_file_that_becomes_a_directory_is_a_deletion_and_additions() {
    let (old, new) = (tree(&[("a", "1")]), tree(&[("a/b", "2")]));
    assert_eq!(summary(&old, &new), ["Deleted a", "Added a/b"]);
    assert_eq!(summary(&new, &old), ["Added a", "Deleted a/b"]);
}

#[test]
fn a_changeset_that_no_two_trees_give_is_refused() {
    let good = Changeset::between(&tree(&[("a", "1"), ("b", "1x")]), &tree(&[("a", "2"), ("c", "1x")]));
    let text = String::from_utf8(good.to_bytes()).unwrap();
    assert!(Changeset::parse(text.as_bytes()).is_ok());
    for (from, to) in [
        (r#""kind":"modified""#, r#""kind":"added""#),
        (r#""kind":"modified""#, r#""kind":"type_changed""#),
        (r#""path":"a""#, r#""path":"d""#),
        (r#""path":"a""#, r#""path":".git/config""#),
        (r#""from":"b""#, r#""from":"a""#),
        (r#""from":"b""#, r#""from":null"#),
        (r#""version":1"#, r#""version":2"#),
        (r#""version":1"#, r#""version":1,"x":1"#),
        (r#""path":"c""#, r#""path":"a/c""#),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(Changeset::parse(text.replacen(from, to, 1).as_bytes()).is_err(), "{from} -> {to}");
    }
    for bad in ["", "null", "[]", "{}"] {
        assert!(Changeset::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn five_thousand_files_are_five_thousand_changes() {
    let entries = (0..5000).map(|n| (path(&format!("d{}/f{n}", n % 50)), file(&n.to_string())));
    let new = Manifest::new(entries.collect()).unwrap();
    let changes = Changeset::between(&Manifest::default(), &new);
    assert_eq!(changes.changes().len(), new.len());
    assert_eq!(changes.counts()[&ChangeKind::Added], 5000);
    assert_eq!(Changeset::parse(&changes.to_bytes()).unwrap(), changes);
}
