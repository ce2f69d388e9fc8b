//! An agent's own progress: saved with its tree, and handed back after a kill.

use std::process::Stdio;

use crate::support::{World, until};

/// Takes twelve turns, and keeps in its own file how many it has taken.
const COUNTING: &str = r#"
state="$CHECKREIN_RUN_STATE"
taken=0
if [ -f "$state" ]; then taken=$(cat "$state"); fi
echo "begins after $taken" >> begins.txt
while [ "$taken" -lt 12 ]; do
  taken=$((taken + 1))
  echo done > "turn-$taken.txt"
  echo "$taken" > "$state.new" && mv "$state.new" "$state"
  sleep 0.15
done
echo 42 > answer.txt
"#;

fn saved(world: &World) -> usize {
    let journal = std::fs::read_to_string(world.path("data/store/journal/00000001.jsonl")).unwrap_or_default();
    journal.matches("\"kind\":\"save_point_taken\"").count()
}

#[test]
fn a_killed_agent_goes_on_from_what_it_saved_with_the_tree_of_that_moment() {
    let world = World::new(COUNTING);
    let mut run = world.command(&["run", "task.yaml"]);
    run.env("CHECKREIN_SAVE_INTERVAL", "100ms").stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    until("progress is saved", || saved(&world) >= 3);
    run.kill().unwrap();
    run.wait().unwrap();

    let mut again = world.command(&["run", "task.yaml"]);
    again.env("CHECKREIN_SAVE_INTERVAL", "100ms").stdout(Stdio::piped()).stderr(Stdio::piped());
    crate::support::Ran::wait(again.spawn().unwrap()).ends_with(0);
    let begins = world.read("project/begins.txt");
    let lines: Vec<&str> = begins.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "begins after 0"), "{begins}");
    let after: u32 = lines[1].strip_prefix("begins after ").unwrap().parse().unwrap();
    assert!((2..12).contains(&after), "it began again after turn {after}");
    for turn in 1..=12 {
        assert_eq!(world.read(&format!("project/turn-{turn}.txt")), "done\n");
    }
    // The last save belongs to the checkpoint that was accepted, and is no evidence.
    let head = world.json(&["checkpoint", "show", "last", "1"]).1;
    let text = serde_json::to_string(&head).unwrap();
    assert!(text.contains("\"run_state\":\"sha256:"), "{text}");
    let (_, refs) = world.json(&["evidence", "list", "last"]);
    assert!(!serde_json::to_string(&refs).unwrap().contains("run-state"));
    let (_, shown) = world.json(&["show", "last", "--why"]);
    let conditions = shown[0]["task"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 6, "{shown:?}");
    world.run(&["show", "last", "--why"]).ends_with(0).says("conditions of the newest attempt").says("base_unchanged");
    world.run(&["gc"]).ends_with(0);
}

#[test]
fn a_fresh_conversation_is_given_nothing_of_the_old_one() {
    let world = World::new(
        r#"
if [ -f "$CHECKREIN_RUN_STATE" ]; then cat "$CHECKREIN_RUN_STATE" >> seen.txt; else echo nothing >> seen.txt; fi
echo "of attempt $CHECKREIN_ATTEMPT" > "$CHECKREIN_RUN_STATE"
if [ "$CHECKREIN_ATTEMPT" -lt 3 ]; then echo wrong > answer.txt; else echo 42 > answer.txt; fi
"#,
    );
    world.policy(
        "rules:\n\
         - {id: same, on: [round], when: 'round.rejections > 0 && round.n == 1', action: retry, with: same}\n\
         - {id: fresh, on: [round], when: 'round.rejections > 0', action: retry, with: fresh, limit: 3}\n",
    );
    world.run(&["run", "task.yaml"]).ends_with(0);
    assert_eq!(world.read("project/seen.txt"), "nothing\nof attempt 1\nnothing\n");
}
