//! Runs many seeds on several threads, says how far it is, and how a failing seed is replayed.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::run::{Report, simulate};
use crate::trace::Trace;

/// How many failures are enough to stop.
const FAILURES_MAX: usize = 5;

/// How many lines of a failing seed's trace are shown.
const LINES_MAX: usize = 60;

/// Which seeds are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    from: u64,
    count: u64,
    jobs: usize,
    /// Whether everything that happens is shown.
    all: bool,
}

impl Wanted {
    /// `SIMULATE_SEED` for one, else `SIMULATE_FROM`, `SIMULATE_SEEDS` and `SIMULATE_JOBS`.
    pub(crate) fn from_environment(count: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
        if let Some(seed) = number("SIMULATE_SEED") {
            return Self { from: seed, count: 1, jobs: 1, all: true };
        }
        let jobs = usize::try_from(number("SIMULATE_JOBS").unwrap_or(2)).unwrap_or(2).max(1);
        let (from, count) = (number("SIMULATE_FROM").unwrap_or(0), number("SIMULATE_SEEDS").unwrap_or(count));
        Self { from, count, jobs, all: false }
    }
}

#[derive(Default)]
struct Sum {
    seeds: u64,
    records: u64,
    millis: u64,
    state_bytes_max: usize,
    slowest: (u64, Duration),
    failed: Vec<u64>,
}

/// Runs them all; returns what to say about those that failed.
pub(crate) fn run(wanted: &Wanted) -> Vec<String> {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Sum::default());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| work(wanted, &next, &sum, started));
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress(&sum, wanted, started);
    if wanted.all && sum.failed.is_empty() {
        // Whoever asks for one seed wants to see what happens in it.
        simulate(wanted.from, Trace::on()).1.trace.print(usize::MAX);
    }
    sum.failed.iter().map(|seed| replay(*seed, wanted.all)).collect()
}

fn work(wanted: &Wanted, next: &AtomicU64, sum: &Mutex<Sum>, started: Instant) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= wanted.count {
            return;
        }
        let seed = wanted.from + number;
        let began = Instant::now();
        let report = guarded(seed);
        let took = began.elapsed();
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.seeds += 1;
        sum.records += report.records;
        sum.millis += report.millis;
        sum.state_bytes_max = sum.state_bytes_max.max(report.state_bytes_max);
        sum.slowest = if took > sum.slowest.1 { (seed, took) } else { sum.slowest };
        if report.failure.is_some() {
            sum.failed.push(seed);
        }
        if sum.failed.len() >= FAILURES_MAX {
            return;
        }
        if sum.seeds.is_multiple_of(10_000) {
            progress(&sum, wanted, started);
        }
    }
}

/// A panic is a failure of its seed, not of all.
pub(crate) fn guarded(seed: u64) -> Report {
    let run = catch_unwind(AssertUnwindSafe(|| simulate(seed, Trace::off()).0));
    run.unwrap_or_else(|_| Report { failure: Some("it panicked".to_owned()), ..Report::default() })
}

fn progress(sum: &Sum, wanted: &Wanted, started: Instant) {
    let seconds = started.elapsed().as_secs_f64().max(0.001);
    let rate = sum.seeds as f64 / seconds;
    let (slow, took) = sum.slowest;
    // Nobody is helped by an error about a line of progress.
    let _ = writeln!(
        std::io::stderr(),
        "{} of {} seeds in {seconds:.1} s ({rate:.0} a second), {} records a seed, {} virtual hours, largest state {} bytes, slowest seed {slow} ({} ms), {} failed",
        sum.seeds,
        wanted.count,
        sum.records / sum.seeds.max(1),
        sum.millis / 3_600_000,
        sum.state_bytes_max,
        took.as_millis(),
        sum.failed.len()
    );
}

/// Runs a failing seed once more and shows the end of its trace.
fn replay(seed: u64, all: bool) -> String {
    let run = catch_unwind(AssertUnwindSafe(|| {
        let (report, world) = simulate(seed, Trace::on());
        world.trace.print(if all { usize::MAX } else { LINES_MAX });
        report.failure
    }));
    let what = run.ok().flatten().unwrap_or_else(|| "it panicked".to_owned());
    format!("seed {seed}: {what}\n    replay it with: scripts/simulate --seed {seed}")
}
