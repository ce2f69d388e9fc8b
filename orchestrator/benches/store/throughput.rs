//! Durable events a second of 64 tasks at once, against a bare loop that appends and
//! syncs the same bytes in groups of 64.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_orchestrator::store::Store;

use crate::{events, folder, median, report};

const TASKS: u64 = 64;
const EVENTS_EACH: u64 = 150;
const ROUNDS: usize = 7;

pub(crate) fn run() {
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let store_folder = folder();
        let events = (TASKS * EVENTS_EACH) as f64;
        let our_rate = events / stored(store_folder.path()).as_secs_f64();
        let bare_rate = events / appended(&lines(store_folder.path())).as_secs_f64();
        ratios.push(our_rate / bare_rate);
        ours.push(our_rate);
        bare.push(bare_rate);
    }
    println!("durable events a second: store {:.0}, bare loop {:.0} (medians of {ROUNDS})", median(ours), median(bare));
    let ratio = median(ratios);
    report("durable events, 64 tasks, of a bare loop", &format!("{ratio:.2}"), ">= 0.50", ratio >= 0.5);
}

fn stored(folder: &Path) -> Duration {
    let runtime = events::runtime();
    let store = Arc::new(events::open(folder));
    let prepared = events::prepare(TASKS, EVENTS_EACH);
    let started = Instant::now();
    runtime.block_on(events::commit_all(&store, prepared));
    let took = started.elapsed();
    runtime.block_on(store.close()).expect("the store closes");
    took
}

/// The lines that the store wrote.
fn lines(folder: &Path) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for number in 1.. {
        let Ok(text) = std::fs::read(folder.join(format!("journal/{number:08}.jsonl"))) else { break };
        lines.extend(text.split_inclusive(|b| *b == b'\n').skip(1).map(<[u8]>::to_vec));
    }
    lines
}

fn appended(lines: &[Vec<u8>]) -> Duration {
    let folder = folder();
    let mut file = File::create(folder.path().join("bare")).expect("a file");
    let started = Instant::now();
    for group in lines.chunks(TASKS as usize) {
        file.write_all(&group.concat()).and_then(|()| file.sync_data()).expect("the disk takes it");
    }
    started.elapsed()
}
