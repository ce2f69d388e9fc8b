//! Tests of paths inside a tree.

use proptest::prelude::*;

use super::*;

#[test]
fn paths_that_could_leave_a_tree_or_plant_a_hook_are_refused() {
    let deep = "d/".repeat(DEPTH_MAX) + "f";
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    for bad in [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/..",
        "./a",
        "a/./b",
        ".git",
        ".git/config",
        "sub/.GIT/hooks/x",
        "a\0b",
        &deep,
        &long,
    ] {
        assert!(RelPath::from_bytes(bad).is_err(), "{bad:?}");
    }
    for good in [".gitignore", "a..b", "...", "a b/c", " b/", ".github"].map(|s| s.trim_end_matches('/')) {
        assert_eq!(RelPath::from_bytes(good).unwrap().as_bytes(), good.as_bytes());
    }
}

#[test]
fn below_means_a_whole_component() {
    let path = |s: &str| RelPath::from_bytes(s).unwrap();
    assert!(path("a/b").is_below(&path("a")));
    assert!(!path("ab").is_below(&path("a")));
    assert!(!path("a").is_below(&path("a")));
    assert_eq!(path("a/b/c").ancestors().collect::<Vec<_>>(), [path("a/b"), path("a")]);
    assert_eq!(path("a/b/c").name(), b"c");
}

proptest! {
    #[test]
    fn every_path_has_exactly_one_text(bytes in prop::collection::vec(any::<u8>(), 1..40)) {
        if let Ok(path) = RelPath::from_bytes(bytes) {
            let text = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<RelPath>(&text).unwrap(), path);
        }
    }
}
