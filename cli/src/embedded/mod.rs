//! The composition root: every role in this process, over one data folder.
//!
//! Opened, it answers questions; started, it works. The folder holds `store`,
//! `blobs`, `keys`, and what worker and reviewer may lose (`cache`).

mod disk;
mod keys;
mod only;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_orchestrator::store::{self, LocalStore, Options, Store as _};
use checkrein_orchestrator::upkeep::DataFolder;
use checkrein_orchestrator::{Config, Orchestrator, Routes, SystemClock, http};
use checkrein_reviewer::{Reviewer, ReviewerConfig, Tools};
use checkrein_shared::api::routes::{Health, Serving};
use checkrein_shared::api::{Api, EventView};
use checkrein_shared::blob::{self, Blobs, FsBlobs};
use checkrein_shared::bus::{Bus, EmbeddedBus, Pool};
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::Coordinator;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::process::Supervisor;
use checkrein_shared::time::{Span, Timestamp};
use checkrein_worker::{HostEnvironment, Worker, WorkerConfig};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, file_hint};
use disk::Disk;
use keys::Keys;
use only::OnlyTask;

/// The pool of this host; jobs on its folders go there.
const POOL: &str = "local";

/// Where programs are looked for when this process has no `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The variable that says how often a running agent's progress is saved.
const SAVE_INTERVAL: &str = "CHECKREIN_SAVE_INTERVAL";

/// More often would only measure the scratch all the time.
const SAVE_INTERVAL_MIN: std::time::Duration = std::time::Duration::from_millis(50);

/// Everything that a process with the data folder open has.
pub(crate) struct Embedded {
    data: PathBuf,
    store: Arc<LocalStore>,
    blobs: Arc<dyn Blobs>,
    bus: EmbeddedBus,
    keys: Keys,
    orchestrator: Arc<Orchestrator>,
    disk: Disk,
    /// Ends worker, reviewer and API.
    shutdown: CancellationToken,
    /// Ends the orchestrator: after the others, which hand it what they have.
    last: CancellationToken,
    /// Cancelled where a part ended on its own.
    broken: CancellationToken,
    /// What runs, with the name of each part; empty until [`Embedded::start`].
    parts: JoinSet<(&'static str, Result<(), String>)>,
}

fn instance(name: &str) -> InstanceId {
    name.parse().expect("the names of this file are valid ids")
}

impl Embedded {
    /// Opens the data folder, and makes it where it is missing. Nothing runs yet.
    pub(crate) async fn open(context: &Context) -> Result<Self, Failure> {
        let data = context.data.clone();
        let (store, blobs) = tokio::task::spawn_blocking({
            let data = data.clone();
            move || open_files(&data)
        })
        .await
        .map_err(|error| Failure::caused("the data folder was not opened", &error))??;
        if let Some(why) = store.rebuilt() {
            context.out.warn(&format!("the index was rebuilt from the journal: {why}"));
        }
        if store.head_file_was_missing() {
            context.out.warn("the journal's head file was missing; it was written anew from what the index knows");
        }
        if let Some(torn) = store.torn_tail() {
            context.out.warn(&torn_text(torn));
        }
        let keys = Keys::load_or_make(&data.join("keys"))?;
        let pool: Pool = POOL.parse().map_err(|error| Failure::caused("the pool has no name", &error))?;
        let config = Config {
            instance: instance("orchestrator"),
            routes: Routes { jobs: pool.clone(), reviews: pool },
            keys: Arc::new(keys.ring.clone()),
            clock: Arc::new(SystemClock::start()),
            all_inside: true,
        };
        let (store, swept) = (Arc::new(store), Arc::new(blobs));
        let blobs: Arc<dyn Blobs> = swept.clone();
        let bus = EmbeddedBus::new();
        let orchestrator = Orchestrator::new(config, store.clone(), blobs.clone(), Arc::new(bus.clone()))
            .collecting(store.clone(), swept);
        Ok(Self {
            data,
            store,
            blobs,
            bus,
            keys,
            orchestrator: Arc::new(orchestrator),
            disk: Disk::default(),
            shutdown: CancellationToken::new(),
            last: CancellationToken::new(),
            broken: CancellationToken::new(),
            parts: JoinSet::new(),
        })
    }

    /// What people's tools talk to.
    pub(crate) fn api(&self) -> Arc<dyn Api> {
        self.orchestrator.api()
    }

    /// Starts all roles, and answers other processes on the socket.
    pub(crate) async fn start(&mut self, serving: Serving) -> Result<(), Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| Failure::caused("the work can't start", error);
        self.orchestrator.prepare().await.map_err(|error| failed(&error))?;
        let coordinator: Arc<dyn Coordinator> = match &serving {
            Serving::All => self.orchestrator.coordinator(),
            Serving::One(task) => Arc::new(OnlyTask::new(self.orchestrator.coordinator(), task.clone())),
        };
        let bus: Arc<dyn Bus> = Arc::new(self.bus.clone());
        let worker = Worker::new(self.worker_config()?, bus.clone(), self.blobs.clone(), coordinator.clone());
        let worker = worker.map_err(|error| failed(&error))?;
        let reviewer = Reviewer::new(self.reviewer_config()?, bus, self.blobs.clone(), coordinator);
        let reviewer = reviewer.map_err(|error| failed(&error))?;
        let listener = http::listen(&self.data).map_err(|error| failed(&error))?;
        let health = Health { version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id(), serving };

        let (orchestrator, last) = (self.orchestrator.clone(), self.last.clone());
        self.spawn("orchestrator", async move { orchestrator.run(last).await });
        if matches!(health.serving, Serving::All) {
            let (orchestrator, shutdown) = (self.orchestrator.clone(), self.shutdown.clone());
            self.spawn("garbage collector", async move {
                orchestrator.keep_clean(shutdown).await;
                Ok::<_, std::convert::Infallible>(())
            });
        }
        let shutdown = self.shutdown.clone();
        self.spawn("worker", async move { worker.run(shutdown).await });
        let shutdown = self.shutdown.clone();
        self.spawn("reviewer", async move { reviewer.run(shutdown).await });
        let (api, shutdown) = (self.api(), self.shutdown.clone());
        self.spawn("local API", http::serve(listener, api, health, shutdown.cancelled_owned()));
        Ok(())
    }

    /// Runs a part; where it ends before the shutdown, everything ends.
    fn spawn<E: std::error::Error + Send + 'static>(
        &mut self,
        part: &'static str,
        work: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let (shutdown, broken) = (self.shutdown.clone(), self.broken.clone());
        self.parts.spawn(async move {
            let ended = work.await.map_err(|error| with_causes(&error));
            if !shutdown.is_cancelled() {
                broken.cancel();
            }
            (part, ended)
        });
    }

    fn worker_config(&self) -> Result<WorkerConfig, Failure> {
        let pool: Pool = POOL.parse().map_err(|error| Failure::caused("the pool has no name", &error))?;
        let cache = self.data.join("cache/worker");
        let mut config = WorkerConfig::new(instance("worker"), cache, Supervisor::current_exe(), vec![pool]);
        let tools = Tools::find(set);
        config.environment = HostEnvironment::new(std::env::vars_os()).with_tools(tools.env);
        config.credentials = tools.hidden;
        config.hidden = vec![self.data.clone()];
        if let Some(interval) = save_interval()? {
            config.save_interval = interval;
        }
        Ok(config)
    }

    fn reviewer_config(&self) -> Result<ReviewerConfig, Failure> {
        let mut tools = Tools::find(set);
        tools.hidden.push(self.data.clone());
        Ok(ReviewerConfig {
            instance: instance(keys::REVIEWER),
            work_dir: self.data.join("cache/reviewer"),
            supervisor: Supervisor::current_exe(),
            pools: vec![POOL.to_owned()],
            key: self.keys.reviewer()?,
            slots: 1,
            path: set("PATH").unwrap_or_else(|| PATH.into()),
            tools_env: tools.env,
            hidden: tools.hidden,
            retry_pause: std::time::Duration::from_secs(2),
        })
    }

    /// Waits until a part ends although nobody asked it to; [`Embedded::close`] tells why.
    pub(crate) async fn failed(&self) -> Failure {
        self.broken.cancelled().await;
        Failure::unable("a part of the program ended before it was asked to")
    }

    /// Waits until the disk of the data folder has been full for a while.
    pub(crate) async fn disk_full(&self) -> Failure {
        self.disk.until_full(&self.data, &self.store).await
    }

    /// Looks at an event for signs of a full disk.
    pub(crate) fn note(&self, event: &EventView) {
        self.disk.note(event);
    }

    /// Closes after work that ended so. Where a part broke, its reason is the better one.
    pub(crate) async fn close_after<T>(self, result: Result<T, Failure>) -> Result<T, Failure> {
        let was_full = self.disk.was_full();
        let closed = self.close().await;
        match (result, closed) {
            // On a full disk the parts can't hand over what they have; that is no news.
            (result, Err(_)) if was_full => result,
            (result, Ok(())) => result,
            (_, Err(failure)) => Err(failure),
        }
    }

    /// Stops what runs: each running job keeps what it has and is given back. Then frees the folder.
    pub(crate) async fn close(mut self) -> Result<(), Failure> {
        self.shutdown.cancel();
        let mut wrong = Vec::new();
        loop {
            if self.parts.len() <= 1 {
                // Everybody else has handed over what there was.
                self.last.cancel();
            }
            let Some(ended) = self.parts.join_next().await else { break };
            match ended {
                Ok((_, Ok(()))) => {}
                Ok((part, Err(why))) => wrong.push(format!("the {part} ended badly: {why}")),
                Err(error) => wrong.push(format!("a part ended badly: {error}")),
            }
        }
        self.bus.close();
        let closed = self.store.close().await;
        // Best effort: a socket that is left is replaced by the next process.
        let _ = std::fs::remove_file(self.data.join(checkrein_shared::api::routes::SOCKET_FILE));
        if let Some(why) = wrong.first() {
            return Err(Failure::unable(why.clone()).hint("start again: tasks go on from their last checkpoint"));
        }
        closed.map_err(|error| store_failure(&self.data, &error))
    }
}

/// How often a running agent's progress is saved, where the person says so.
fn save_interval() -> Result<Option<std::time::Duration>, Failure> {
    let Some(text) = set(SAVE_INTERVAL) else { return Ok(None) };
    let text = text.to_string_lossy();
    let interval: Span = text.parse().map_err(|error| {
        Failure::usage(format!("{SAVE_INTERVAL} is `{text}`: {error}")).hint("write a duration such as `30s`")
    })?;
    Ok(Some(interval.to_duration().max(SAVE_INTERVAL_MIN)))
}

/// The value of a variable that is set and not empty.
fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn torn_text(torn: &store::TornTail) -> String {
    let segment = torn.segment.display();
    match &torn.kept {
        Some(kept) => format!(
            "a crash had left an unfinished record at the end of {segment}; nobody had been told that it was stored; \
             its {} bytes are in {}",
            torn.bytes,
            kept.display()
        ),
        None => format!("the last line of {segment} had no end; it was added"),
    }
}

fn open_files(data: &Path) -> Result<(LocalStore, FsBlobs), Failure> {
    if data.exists() && !data.is_dir() {
        let what = "the data folder can't be used: this is no folder";
        return Err(Failure::usage(what).at(data.display()).hint("name a folder with --data DIR; a new one is made"));
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(data).map_err(|error| {
        Failure::caused("the data folder can't be made", &error).at(data.display()).hint("name another with --data DIR")
    })?;
    check_begun(data)?;
    let store = LocalStore::open(data.join("store"), &Options::new(Timestamp::now()));
    let store = store.map_err(|error| store_failure(data, &error))?;
    let blobs = FsBlobs::open(data.join("blobs"));
    let blobs = blobs.map_err(|error| {
        let hint = match &error {
            blob::Error::Io { source, .. } => file_hint(source),
            _ => None,
        };
        Failure::caused("the blob store can't be opened", &error).at(data.display()).maybe_hint(hint)
    })?;
    Ok((store, blobs))
}

/// Where something was stored and the journal is gone, this is no first run, and nothing begins anew by itself.
pub(crate) fn check_begun(data: &Path) -> Result<(), Failure> {
    let lost = DataFolder::new(data).has_lost_its_journal().map_err(|error| store_failure(data, &error))?;
    if !lost {
        return Ok(());
    }
    let journal = data.join("store/journal");
    let what = format!("the journal is gone: blobs or an index are there, but nothing in {}", journal.display());
    Err(Failure::new(Exit::Integrity, what).at(data.display()).hint(
        "nothing was changed; restore a backup, or, to begin anew, name another folder with --data DIR or move this one away",
    ))
}

/// What is said where the store can't be opened.
pub(crate) fn store_failure(data: &Path, error: &store::Error) -> Failure {
    let mut failure = match error {
        store::Error::InUse { holder, .. } => {
            let who = holder.as_ref().map_or_else(String::new, |holder| format!(": {holder}"));
            return Failure::unable(format!("another instance is running{who}"))
                .at(data.display())
                .hint("wait for it or stop it, or use another --data DIR");
        }
        other => match with_causes(other) {
            why if disk::says_full(&why) => return disk::failure(data, Some(why)),
            why => Failure::unable(why).at(data.display()),
        },
    };
    if error.is_integrity() {
        failure.exit = Exit::Integrity;
        return failure.hint("nothing was changed; `checkrein store verify` says what is wrong and what to do");
    }
    match error {
        store::Error::Io { source, .. } => failure.maybe_hint(file_hint(source)),
        _ => failure,
    }
}
