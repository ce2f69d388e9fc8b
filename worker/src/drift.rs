//! Looks at the targets of tasks whose verdicts are awaited or in force, so
//! that drift is seen soon and not only where it would do harm.
//!
//! It only hastens what job starts, gates and redeeming would find anyway. It
//! reports each state of a target once, and changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{DriftReport, Watched};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use checkrein_shared::records::TaskSpec;
use checkrein_shared::tree::node;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Services;
use crate::desk::RECORD_BYTES_MAX;
use crate::ground;
use crate::measure;
use crate::preconditions;
use crate::propose::Stored;
use crate::workspace::snapshot::{Survey, snapshot};
use crate::workspace::{Rules, StatCache};

/// At most this share of the time is spent measuring: one part in this many.
const SHARE: u32 = 10;

/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What is kept between two looks at a task's target.
#[derive(Default)]
struct Watch {
    spec: Option<(Digest, PathBuf)>,
    rules: Option<(Digest, Arc<Rules>)>,
    cache: StatCache,
    reported: Option<(Digest, Digest)>,
}

/// Looks again and again until `over`.
pub(crate) async fn watch(services: Services, over: CancellationToken) {
    let mut watches: BTreeMap<TaskId, Watch> = BTreeMap::new();
    loop {
        let started = Instant::now();
        let look = look(&services, &mut watches);
        tokio::select! {
            () = look => {}
            () = over.cancelled() => return,
        }
        let pause = (started.elapsed() * SHARE).clamp(services.config.drift_interval, PAUSE_MAX);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = over.cancelled() => return,
        }
    }
}

async fn look(services: &Services, watches: &mut BTreeMap<TaskId, Watch>) {
    let watched = match services.coordinator.watched().await {
        Ok(watched) => watched,
        Err(error) => {
            tracing::debug!(%error, "it is not known which targets to watch");
            return;
        }
    };
    watches.retain(|task, _| watched.iter().any(|w| &w.task_id == task));
    for task in &watched {
        let watch = watches.entry(task.task_id.clone()).or_default();
        if let Err(error) = look_at(services, task, watch).await {
            tracing::debug!(task.id = %task.task_id, error = with_causes(&*error), "a target can't be watched now");
        }
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn look_at(services: &Services, task: &Watched, watch: &mut Watch) -> Result<(), Failed> {
    let Some(target) = target(services, task, watch).await? else { return Ok(()) };
    let rules = match &watch.rules {
        Some((base, rules)) if *base == task.base => Arc::clone(rules),
        _ => measure::rules_of(services, task.base, &target).await?,
    };
    watch.rules = Some((task.base, Arc::clone(&rules)));
    let found = snapshot(&target, &mut watch.cache, &Survey::new(rules)).await?;
    if found.root == task.base {
        watch.reported = None;
        return Ok(());
    }
    if watch.reported == Some((task.base, found.root)) {
        return Ok(());
    }
    let base = Stored { digest: task.base, manifest: node::load_tree(&*services.blobs, task.base).await? };
    let now = Stored { digest: found.root, manifest: found.manifest };
    tracing::info!(task.id = %task.task_id, base = %base.digest, target = %now.digest, "the target drifted");
    let report = DriftReport {
        task_id: task.task_id.clone(),
        base: base.digest,
        target: now.digest,
        paths: ground::differing(&base, &now),
    };
    services.coordinator.report_drift(report).await?;
    watch.reported = Some((base.digest, now.digest));
    Ok(())
}

/// The directory of a task's target; `None` where another host has it.
async fn target(services: &Services, task: &Watched, watch: &mut Watch) -> Result<Option<PathBuf>, Failed> {
    if let Some((spec, path)) = &watch.spec
        && *spec == task.spec
    {
        return Ok(Some(path.clone()));
    }
    let bytes = services.blobs.get(task.spec, RECORD_BYTES_MAX).await?;
    let spec: TaskSpec = json::parse_as("task specification", &bytes)?;
    let Ok(path) = preconditions::target(&spec, &task.root_id) else { return Ok(None) };
    watch.spec = Some((task.spec, path.clone()));
    Ok(Some(path))
}
