//! The help, as people see it.

use crate::support::World;

/// The help in eighty columns; the version line is cut off.
fn help(args: &[&str]) -> String {
    let ran = World::new("").run(&[args, &["--help"]].concat()).ends_with(0);
    assert!(!ran.stdout.contains('\u{1b}'), "piped help has no escape sequences");
    ran.stdout
}

#[test]
fn the_first_help_teaches() {
    insta::assert_snapshot!(help(&[]));
}

#[test]
fn the_help_of_run_has_examples() {
    insta::assert_snapshot!(help(&["run"]));
}

#[test]
fn the_help_of_takeover_has_examples() {
    insta::assert_snapshot!(help(&["takeover"]));
}
