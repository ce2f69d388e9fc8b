//! The demos, as the README shows them.

use crate::support::World;

fn demo(args: &[&str]) -> crate::support::Ran {
    let world = World::new("");
    let folder = world.path("demo").display().to_string();
    let ran = world.run(&[&["demo"], args, &["--to", &folder]].concat()).ends_with(0);
    assert!(ran.stdout.contains("show last --why") && ran.stdout.contains(&folder), "{}", ran.stdout);
    ran
}

#[test]
fn two_lies_are_caught_and_the_fix_is_applied() {
    demo(&["hello"]).says("weakened_tests").says("Only the third attempt").says("--kill");
}

#[test]
fn a_verdict_turns_stale_before_the_reader_s_eyes() {
    let ran = demo(&["drift"]).says("the colleague's line is still in");
    assert!(
        ran.stdout.lines().any(|line| line.contains("stale") && line.contains("base: ") && line.contains(" -> ")),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_person_takes_over_and_hands_back() {
    demo(&["takeover"]).says("takeover last --to").says("handback last").says("The person's work is in project/");
}

#[test]
fn a_kill_loses_nothing() {
    for name in ["hello", "drift", "takeover"] {
        demo(&[name, "--kill"]).says("Nothing was lost").says("Nothing was done twice");
    }
}

#[test]
fn a_demo_leaves_a_folder_with_something_in_it_alone() {
    let world = World::new("");
    world.run(&["demo", "--to", "project"]).ends_with(2).says("not empty");
    assert_eq!(world.read("project/answer.txt"), "41\n");
}
