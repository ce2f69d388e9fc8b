//! What strictness costs: canonical hashing and strict parsing of a checkpoint, against plain serde_json.
//!
//! It prints ratios of medians from one run. It asserts nothing: machines differ.
#![expect(clippy::print_stdout, reason = "a benchmark talks to the person who started it")]

use std::hint::black_box;
use std::time::Instant;

use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::Checkpoint;

const RECORD: &[u8] = include_bytes!("../tests/golden/records/checkpoint.second.json");
const SAMPLES: usize = 101;
const RUNS_PER_SAMPLE: u32 = 200;

/// The median time of one run, in nanoseconds.
fn median(mut run: impl FnMut()) -> u128 {
    let mut samples: Vec<u128> = (0..SAMPLES)
        .map(|_| {
            let started = Instant::now();
            (0..RUNS_PER_SAMPLE).for_each(|_| run());
            started.elapsed().as_nanos() / u128::from(RUNS_PER_SAMPLE)
        })
        .collect();
    samples.sort_unstable();
    samples[SAMPLES / 2]
}

fn report(what: &str, ours: u128, plain: u128) {
    println!("{what:<18} {ours:>8} ns   plain {plain:>8} ns   ratio {:.2}", ours as f64 / plain as f64);
}

fn main() {
    let record: Checkpoint = json::parse_as("checkpoint", RECORD).expect("the golden record is one");
    report(
        "hash a checkpoint",
        median(|| drop(black_box(record.compute_hash()))),
        median(|| drop(black_box(serde_json::to_vec(&record).map(Digest::of)))),
    );
    report(
        "read a checkpoint",
        median(|| drop(black_box(json::parse_as::<Checkpoint>("checkpoint", RECORD)))),
        median(|| drop(black_box(serde_json::from_slice::<Checkpoint>(RECORD)))),
    );
}
