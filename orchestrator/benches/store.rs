//! The store against the bare disk: durable events a second, growth, opening, rebuilding, recovery, idle memory.
//!
//! Every figure stands beside its target, and what is compared is measured in the
//! same run on the same disk. It asserts nothing: machines differ. The records have
//! the shape and size of those of real tasks: a state of 2 KB, an event of 300
//! bytes, a timer each, a message with every fourth and a cause with every second.
//!
//! `CHECKREIN_BENCH_EVENTS` sets how many events are opened (1,000,000),
//! `CHECKREIN_BENCH_DISK` a folder on the disk to measure, and
//! `CHECKREIN_BENCH_BINARY` the program whose idle memory is measured.
#![expect(clippy::print_stdout, reason = "a benchmark talks to the person who started it")]

#[path = "store/events.rs"]
mod events;
#[path = "store/growth.rs"]
mod growth;
#[path = "store/idle.rs"]
mod idle;
#[path = "store/opening.rs"]
mod opening;
#[path = "store/throughput.rs"]
mod throughput;

use std::path::PathBuf;
use std::time::Duration;

/// Prints a figure beside its target.
fn report(what: &str, figure: &str, target: &str, is_met: bool) {
    println!("{what:<48} {figure:>12}   target {target:<12} {}", if is_met { "met" } else { "MISSED" });
}

/// The middle one.
fn median<T: Copy + PartialOrd>(mut samples: Vec<T>) -> T {
    samples.sort_by(|a, b| a.partial_cmp(b).expect("no sample is not a number"));
    samples[samples.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// A fresh folder on the disk that is measured.
fn folder() -> tempfile::TempDir {
    let disk = std::env::var_os("CHECKREIN_BENCH_DISK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(disk).expect("a folder for the benchmark")
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [(&str, fn()); 5] = [
        ("throughput", throughput::run),
        ("growth", growth::run),
        ("recovery", opening::recovery),
        ("opening", opening::run),
        ("idle", idle::run),
    ];
    for (name, part) in parts {
        if only.is_empty() || only.iter().any(|wanted| wanted == name) {
            part();
        }
    }
}
