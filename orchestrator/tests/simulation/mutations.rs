//! The teeth of the simulation: with any one guard switched off, a seed fails that passes otherwise.

use std::io::Write as _;

use checkrein_orchestrator::{Guard, switch_off};

use crate::run::simulate;
use crate::seeds::guarded;
use crate::table::rows;
use crate::trace::Trace;

/// What a seed says with a guard switched off.
fn without(guard: Guard, seed: u64) -> Option<String> {
    switch_off(Some(guard));
    let failure = guarded(seed).failure;
    switch_off(None);
    failure
}

#[test]
fn every_guard_is_noticed_by_some_seed() {
    let rows = rows();
    let mut wrong = Vec::new();
    for guard in Guard::ALL {
        let name = format!("{guard:?}");
        let Some(row) = rows.iter().find(|row| row.guard == name) else {
            wrong.push(format!("{name} is not in the table of docs/assurance.md"));
            continue;
        };
        if let Some(failure) = guarded(row.seed).failure {
            wrong.push(format!("seed {} fails with every guard on: {failure}", row.seed));
        }
        match without(*guard, row.seed) {
            None => wrong.push(format!("{name}: seed {} does not notice that it is off", row.seed)),
            Some(says) if !says.contains(&row.says) => wrong.push(format!("{name}: seed {} says: {says}", row.seed)),
            Some(_) => {}
        }
    }
    let again = "where a change has moved the seeds, docs/assurance.md says how others are found";
    assert!(wrong.is_empty(), "{}\n{again}", wrong.join("\n"));
}

/// Shows everything that happens in one seed with one guard switched off.
#[test]
#[ignore = "it shows something, and is for `scripts/simulate --seed X --without GUARD`"]
fn one_seed_without_one_guard() {
    let seed = std::env::var("SIMULATE_SEED").expect("a seed").parse().expect("a number");
    let name = std::env::var("SIMULATE_GUARD").expect("a guard");
    let guard = Guard::ALL.iter().find(|guard| format!("{guard:?}") == name).expect("the name of a guard");
    switch_off(Some(*guard));
    let (report, world) = simulate(seed, Trace::on());
    switch_off(None);
    world.trace.print(usize::MAX);
    let says = report.failure.unwrap_or_else(|| "nothing is noticed".to_owned());
    // Nobody is helped by an error about this line.
    let _ = writeln!(std::io::stderr(), "seed {seed} without {name}: {says}");
}

/// Finds a seed for each guard, the table's own where that still notices it, and prints the table's lines: for whoever
/// has changed what the seeds do.
#[test]
#[ignore = "it takes minutes, and is for making the table anew"]
fn find_a_seed_for_every_guard() {
    let most: u64 = std::env::var("SIMULATE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    let only = std::env::var("SIMULATE_GUARD").ok();
    let rows = &rows();
    let wanted = Guard::ALL.iter().filter(|guard| only.as_ref().is_none_or(|name| *name == format!("{guard:?}")));
    std::thread::scope(|scope| {
        let guards: Vec<Guard> = wanted.copied().collect();
        for half in guards.chunks(guards.len().div_ceil(2).max(1)) {
            let half = half.to_vec();
            scope.spawn(move || {
                for guard in half {
                    let known = rows.iter().find(|row| row.guard == format!("{guard:?}")).map(|row| row.seed);
                    let found = known.into_iter().chain(0..most).find_map(|seed| Some((seed, without(guard, seed)?)));
                    // Nobody is helped by an error about a line of the table.
                    let _ = match found {
                        Some((seed, says)) => writeln!(std::io::stderr(), "| `{guard:?}` | ? | {seed} | {says} |"),
                        None => writeln!(std::io::stderr(), "{guard:?}: no seed below {most} notices it"),
                    };
                }
            });
        }
    });
}
