//! Whether an event costs more the longer its task is.

use std::sync::Arc;
use std::time::Instant;

use checkrein_orchestrator::store::Store;
use checkrein_shared::ids::TaskId;

use crate::{events, folder, median, millis, report};

const OLD: u64 = 10_000;
const YOUNG: u64 = 10;
const SAMPLES: u64 = 400;

pub(crate) fn run() {
    let runtime = events::runtime();
    let folder = folder();
    let store = Arc::new(events::open(folder.path()));
    let (mut old, mut young) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let grown: TaskId = "t-grown".parse().expect("an id");
        for version in 0..OLD {
            events::step(store.as_ref(), &grown, version).await;
        }
        // In turns, so that both meet the same disk.
        for sample in 0..SAMPLES {
            let task: TaskId = format!("t-young-{sample}").parse().expect("an id");
            for version in 0..YOUNG - 1 {
                events::step(store.as_ref(), &task, version).await;
            }
            let started = Instant::now();
            store.commit(&task, YOUNG - 1, events::commit(&task, YOUNG - 1)).await.expect("stored");
            young.push(started.elapsed());
            let version = OLD + sample;
            let started = Instant::now();
            store.commit(&grown, version, events::commit(&grown, version)).await.expect("stored");
            old.push(started.elapsed());
        }
        store.close().await.expect("the store closes");
    });
    let (old, young) = (median(old), median(young));
    println!("one event: the 10th {}, the 10,000th {} (medians of {SAMPLES})", millis(young), millis(old));
    let ratio = old.as_secs_f64() / young.as_secs_f64();
    report("the 10,000th event of a task, of the 10th", &format!("{ratio:.2}"), "<= 1.20", ratio <= 1.2);
}
