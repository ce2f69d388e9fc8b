//! How long it takes to open many events with an index and without, and to recover one task.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_orchestrator::store::Store;
use checkrein_shared::ids::TaskId;

use crate::{events, folder, median, millis, report};

const EVENTS: u64 = 1_000_000;
const TASKS: u64 = 500;
const RECOVERED: u64 = 1_500;

fn timed(folder: &Path) -> Duration {
    let started = Instant::now();
    let store = events::open(folder);
    let took = started.elapsed();
    assert!(store.head().count > 0, "there is something to open");
    took
}

pub(crate) fn run() {
    let wanted = std::env::var("CHECKREIN_BENCH_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(EVENTS);
    let folder = folder();
    let runtime = events::runtime();
    let store = Arc::new(events::open(folder.path()));
    let started = Instant::now();
    runtime.block_on(async {
        events::fill(&store, TASKS, wanted / TASKS).await;
        store.close().await.expect("the store closes");
    });
    drop(store);
    let (journal, index) = (size(&folder.path().join("journal")), size(&folder.path().join("index")));
    println!(
        "{wanted} events of {TASKS} tasks: written in {:.0} s; journal {} MiB, index {} MiB",
        started.elapsed().as_secs_f64(),
        journal >> 20,
        index >> 20
    );
    let opened = median((0..3).map(|_| timed(folder.path())).collect());
    let limit = Duration::from_secs(3);
    report(&format!("opening {wanted} events with the index"), &millis(opened), "< 3 s", opened < limit);
    std::fs::remove_dir_all(folder.path().join("index")).expect("the index can be removed");
    let rebuilt = timed(folder.path());
    let limit = Duration::from_secs(60);
    report(&format!("rebuilding the index of {wanted} events"), &millis(rebuilt), "< 60 s", rebuilt < limit);
}

fn size(folder: &Path) -> u64 {
    let entries = folder.read_dir().expect("the folder is there").map(|entry| entry.expect("an entry"));
    let sizes = entries.map(|entry| match entry.metadata().expect("its size") {
        metadata if metadata.is_dir() => size(&entry.path()),
        metadata => metadata.len(),
    });
    sizes.sum()
}

/// From a kill to the state of a task of 1,500 events: with the index as the kill left it, and without any.
pub(crate) fn recovery() {
    let (running, crashed) = (folder(), folder());
    let runtime = events::runtime();
    let task: TaskId = "t-0".parse().expect("an id");
    let store = Arc::new(events::open(running.path()));
    runtime.block_on(events::fill(&store, 1, RECOVERED));
    let recover = |without_index: bool| {
        let target = crashed.path().join("copy");
        // Every copy is what a kill at this moment leaves: the store is still open.
        copy(running.path(), &target);
        if without_index {
            std::fs::remove_dir_all(target.join("index")).expect("the index can be removed");
        }
        let started = Instant::now();
        let store = events::open(&target);
        let stored = runtime.block_on(store.load(&task)).expect("it loads").expect("it is there");
        let took = started.elapsed();
        assert_eq!(stored.version, RECOVERED, "nothing is lost");
        drop(store);
        std::fs::remove_dir_all(&target).expect("the copy can be removed");
        took
    };
    let limit = Duration::from_millis(90);
    for (what, without_index) in [("a kill", false), ("a kill and the loss of the index", true)] {
        let took = median((0..9).map(|_| recover(without_index)).collect());
        report(&format!("recovering 1,500 events after {what}"), &millis(took), "<= 90 ms", took <= limit);
    }
    runtime.block_on(store.close()).expect("the store closes");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder for the copy");
    for entry in from.read_dir().expect("the folder is there").map(|entry| entry.expect("an entry")) {
        let (source, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        match source.is_dir() {
            true => copy(&source, &target),
            // A temporary file may be gone already, as after a kill.
            false => drop(std::fs::copy(source, target)),
        }
    }
}
