//! The order of an apply: look, stage, plan, swap, and on any failure put back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{io, mem};

use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Entry, RelPath};
use rustix::fs::fsync;

use super::classify::Remains;
use super::forward::{self, Halt};
use super::plan::{self, Op, Plan};
use super::stage::Stage;
use super::survey::{Survey, survey};
use super::{Applied, Apply, Conflict, Error, Outcome, RootLock, Step, Steps, source, undo};
use crate::workspace::STAGE_NAME;
use crate::workspace::beneath::Root;

/// Everything that the file work of one apply needs.
pub(super) struct Job {
    pub(super) root: Arc<Root>,
    pub(super) stage: Stage,
    pub(super) ops: Vec<Op>,
    pub(super) changeset: Digest,
    pub(super) atomic: bool,
    pub(super) scratch: Option<PathBuf>,
    steps: Steps,
}

impl Job {
    pub(super) fn step(&self, step: Step<'_>) -> Result<(), Error> {
        (self.steps)(step).map_err(|_| Error::Stopped)
    }

    pub(super) fn fail(&self, path: &RelPath, source: io::Error) -> Error {
        Error::Io { path: path.under(self.root.path()), source }
    }

    pub(super) fn fail_stage(&self, source: io::Error) -> Error {
        Error::Io { path: self.stage.path.clone(), source }
    }
}

/// What is known before anything is touched.
struct Prepared {
    job: Arc<Job>,
    survey: Survey,
    plan: Option<Plan>,
}

/// Runs file work where it does not hold up the asynchronous threads.
pub(super) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("file work neither panics nor is aborted")
}

pub(super) async fn run(lock: &RootLock, request: &Apply<'_>) -> Result<Outcome, Error> {
    let changeset = request.changeset.digest();
    let ops = plan::ops(request.changeset);
    if let Some(op) = ops.iter().find(|op| op.path.components().next() == Some(STAGE_NAME.as_bytes())) {
        return Err(Error::Reserved(op.path.clone()));
    }
    if ops.is_empty() {
        return Ok(Outcome::Applied(Applied { changeset, changed: Vec::new(), already: Vec::new() }));
    }
    let (root, steps) = (Arc::clone(lock.root()), Arc::clone(&request.steps));
    let (atomic, scratch) = (request.atomic, request.scratch.clone());
    let prepared = on_thread(move || {
        let at = |path: &Path| {
            let path = path.to_owned();
            |source| Error::Io { path, source }
        };
        let stage = Stage::open(&root, changeset).map_err(at(root.path()))?;
        let plan = stage.plan(changeset).map_err(at(&stage.path))?;
        let job = Job { root, stage, ops, changeset, atomic, scratch, steps };
        let survey = survey(&job).inspect_err(|_| {
            if plan.is_none() {
                // Nothing was displaced yet; a stage that can't be removed is found again by the next call.
                let _ = job.stage.dissolve(&job.root);
            }
        })?;
        Ok::<_, Error>(Prepared { job: Arc::new(job), survey, plan })
    });
    carry_out(prepared.await?, request).await
}

async fn carry_out(mut prepared: Prepared, request: &Apply<'_>) -> Result<Outcome, Error> {
    let job = Arc::clone(&prepared.job);
    // Without a plan nothing was swapped: what stands as it should stood so before.
    let mut done: Vec<usize> = (0..job.ops.len())
        .filter(|index| prepared.survey.remains[*index] == Remains::Nothing)
        .filter(|index| prepared.plan.as_ref().is_some_and(|plan| !plan.already.contains(&job.ops[*index].number)))
        .collect();
    let conflicts = mem::take(&mut prepared.survey.conflicts);
    let halt = if conflicts.is_empty() {
        match stage_all(&prepared, request).await {
            Ok(plan) => {
                let worker = Arc::clone(&job);
                let remains = prepared.survey.remains;
                let swapped;
                (done, swapped) = on_thread(move || {
                    let result = forward::swap_all(&worker, &remains, &mut done);
                    (done, result)
                })
                .await;
                match swapped.and_then(|()| complete(&job).map_err(Halt::Error)) {
                    Ok(()) => return Ok(applied(&job, &plan)),
                    Err(halt) => halt,
                }
            }
            Err(error) => Halt::Error(error),
        }
    } else {
        Halt::Conflicts(conflicts)
    };
    if matches!(halt, Halt::Error(Error::Stopped)) {
        return Err(Error::Stopped);
    }
    let not_undone = on_thread(move || undo::undo(&job, &done)).await?;
    conclude(halt, not_undone)
}

fn conclude(halt: Halt, not_undone: Vec<RelPath>) -> Result<Outcome, Error> {
    match halt {
        Halt::Conflicts(conflicts) => Ok(Outcome::Conflict { conflicts, not_undone }),
        Halt::Error(error) => {
            if !not_undone.is_empty() {
                tracing::error!(paths = ?not_undone, "a failed apply could not be undone everywhere");
            }
            Err(error)
        }
    }
}

/// Stages what has to be staged, then writes the plan unless there is one from before a crash.
async fn stage_all(prepared: &Prepared, request: &Apply<'_>) -> Result<Plan, Error> {
    let job = &prepared.job;
    job.step(Step::Preflighted)?;
    for (index, op) in job.ops.iter().enumerate() {
        if prepared.survey.remains[index] == Remains::StageAndSwap {
            source::stage(job, index, request.blobs).await?;
            job.step(Step::Staged(&op.path))?;
        }
    }
    let plan = prepared.plan.clone().unwrap_or_else(|| {
        let remains = job.ops.iter().zip(&prepared.survey.remains);
        let already = remains.filter(|(_, r)| **r == Remains::Nothing).map(|(op, _)| op.number).collect();
        Plan { version: plan::VERSION, changeset: job.changeset, already }
    });
    let (worker, kept) = (Arc::clone(job), plan.clone());
    on_thread(move || worker.stage.write_plan(&kept).map_err(|e| worker.fail_stage(e))).await?;
    job.step(Step::Planned)?;
    Ok(plan)
}

/// Makes everything durable.
fn complete(job: &Job) -> Result<(), Error> {
    for op in &job.ops {
        if op.new.is_none() {
            super::swap::prune_parents(&job.root, &op.path);
        }
    }
    let mut directories = std::collections::BTreeSet::new();
    for op in &job.ops {
        let exists = |directory: &Option<RelPath>| job.root.directory(directory.as_ref()).is_ok();
        directories.extend(op.path.ancestors().map(Some).chain([None]).find(exists));
    }
    for directory in directories {
        let synced = job.root.directory(directory.as_ref()).and_then(|fd| Ok(fsync(&fd)?));
        let path = directory.map_or_else(|| job.root.path().to_owned(), |d| d.under(job.root.path()));
        synced.map_err(|source| Error::Io { path, source })?;
    }
    job.stage.sync().map_err(|e| job.fail_stage(e))?;
    job.step(Step::Synced)
}

fn applied(job: &Job, plan: &Plan) -> Outcome {
    let mut ops: Vec<&Op> = job.ops.iter().collect();
    ops.sort_by(|a, b| a.path.cmp(&b.path));
    let (already, changed): (Vec<&Op>, Vec<&Op>) = ops.into_iter().partition(|op| plan.already.contains(&op.number));
    let paths = |ops: Vec<&Op>| ops.into_iter().map(|op| op.path.clone()).collect();
    Outcome::Applied(Applied { changeset: job.changeset, changed: paths(changed), already: paths(already) })
}

/// The conflict of one path.
pub(super) fn single(op: &Op, found: Option<Entry>, note: String) -> Vec<Conflict> {
    vec![Conflict { path: op.path.clone(), expected: op.old.clone(), found, note }]
}
