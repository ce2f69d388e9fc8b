//! The simulation: the real orchestrator, with its clock, disk, bus, workers, reviewers and people under the rule of one
//! seed. `docs/assurance.md` says what it shows.
//!
//! A seed that fails is replayed alone with `scripts/simulate --seed N`.

mod blobs;
mod bus;
mod clock;
mod crew;
mod exec;
mod keys;
#[cfg(feature = "mutations")]
mod mutations;
mod oracle;
mod people;
mod policies;
mod process;
mod reviewer;
mod rng;
mod run;
mod scenario;
mod seeds;
mod target;
mod trace;
mod worker;
mod world;

mod table;

use seeds::Wanted;

/// As many as nobody minds with every `cargo test`; continuous integration runs more.
const SEEDS: u64 = 200;

#[test]
fn every_seed_holds() {
    let wanted = Wanted::from_environment(SEEDS);
    let failed = seeds::run(&wanted);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_same_seed_is_the_same_simulation() {
    for seed in [1, 7, 42] {
        let (one, _) = run::simulate(seed, trace::Trace::off());
        let (other, _) = run::simulate(seed, trace::Trace::on());
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "seed {seed}");
    }
}
