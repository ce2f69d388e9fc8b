//! Everything that one simulation consists of, and what its parts share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_orchestrator::Orchestrator;
use checkrein_orchestrator::store::simulated::{Crash, Disk, SimulatedStore};
use checkrein_shared::bus::{Message, Queue};
use checkrein_shared::ids::{RootId, TaskId};
use tokio::sync::oneshot;

use crate::blobs::MemoryBlobs;
use crate::bus::{Fate, Item, SimBus, Weather};
use crate::clock::SimClock;
use crate::exec::{Exec, Process};
use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::target::Target;
use crate::trace::Trace;

/// The orchestrator did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// A running orchestrator.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) orchestrator: Rc<Orchestrator>,
    pub(crate) store: Arc<SimulatedStore>,
    /// Whether it has taken up what was running; nobody is answered before.
    pub(crate) ready: bool,
}

/// What makes the weather on the bus.
pub(crate) struct SimWeather {
    rng: Mutex<Rng>,
    now: Arc<AtomicU64>,
    bad: u64,
    pub(crate) chaos: AtomicBool,
    kill: AtomicBool,
}

impl SimWeather {
    /// Whether the orchestrator is to die for the bus's sake.
    pub(crate) fn take_kill(&self) -> bool {
        self.kill.swap(false, Ordering::Relaxed)
    }
}

impl Weather for SimWeather {
    fn fate(&self, _: &Message) -> Fate {
        let rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.chaos.load(Ordering::Relaxed) {
            return Fate { copies: 1, delay: 1, ..Fate::default() };
        }
        let bad = |percent: u64| rng.percent(percent);
        let copies = match () {
            () if bad(self.bad / 2) => 0,
            () if bad(self.bad) => 2,
            () => 1,
        };
        let delay = if bad(self.bad) { rng.below(120_000) } else { rng.below(300) };
        Fate { refused: bad(self.bad), copies, delay, publisher_dies: bad(self.bad / 5) }
    }

    fn kill_publisher(&self) {
        self.kill.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

pub(crate) struct World {
    pub(crate) exec: Rc<Exec>,
    pub(crate) rng: Rng,
    pub(crate) scenario: Scenario,
    pub(crate) weather: Arc<SimWeather>,
    pub(crate) bus: Arc<SimBus>,
    pub(crate) blobs: Arc<MemoryBlobs>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) targets: RefCell<BTreeMap<RootId, Target>>,
    pub(crate) tasks: RefCell<Vec<TaskId>>,
    pub(crate) running: RefCell<Option<Running>>,
    /// How the orchestrator's process is to end, as soon as the task that is being polled stops.
    pub(crate) crash: Cell<Option<Crash>>,
    /// Workers and reviewers, by number: what they are now.
    pub(crate) crew: RefCell<BTreeMap<String, Process>>,
    pub(crate) oracle: RefCell<Oracle>,
    pub(crate) trace: Trace,
    /// Everything is over.
    pub(crate) ended: Cell<bool>,
}

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> Rc<Self> {
        let rng = Rng::new(seed);
        let scenario = Scenario::new(&rng);
        let millis = Arc::new(AtomicU64::new(0));
        let weather = Arc::new(SimWeather {
            rng: Mutex::new(Rng::new(seed ^ 0x0b05)),
            now: millis.clone(),
            bad: scenario.bad_bus,
            chaos: AtomicBool::new(true),
            kill: AtomicBool::new(false),
        });
        let disk = Disk::new(scenario.segment_bytes_max).expect("an empty disk");
        let blobs = Arc::new(MemoryBlobs::default());
        trace.say(0, || format!("{scenario:?}"));
        Rc::new(Self {
            exec: Rc::new(Exec::new(millis.clone())),
            weather: weather.clone(),
            bus: Arc::new(SimBus::new(weather)),
            oracle: RefCell::new(Oracle::new(blobs.clone(), &scenario)),
            blobs,
            clock: Arc::new(SimClock::new(millis)),
            disk: Arc::new(disk),
            targets: RefCell::default(),
            tasks: RefCell::default(),
            running: RefCell::default(),
            crash: Cell::new(None),
            crew: RefCell::default(),
            trace,
            ended: Cell::new(false),
            scenario,
            rng,
        })
    }

    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        self.trace.say(self.exec.now(), what);
    }

    pub(crate) fn chaos(&self) -> bool {
        self.weather.chaos.load(Ordering::Relaxed)
    }

    /// True `percent` times in a hundred, as long as there are faults.
    pub(crate) fn fault(&self, percent: u64) -> bool {
        self.chaos() && self.rng.percent(percent)
    }

    pub(crate) async fn sleep(&self, millis: u64) {
        self.exec.sleep(millis).await;
    }

    /// Dies here, now and then.
    pub(crate) async fn may_crash_here(&self, point: &str) {
        if self.chaos() && self.rng.once_in(self.scenario.crash_once_in) {
            self.say(|| format!("the orchestrator dies: {point}"));
            self.crash.set(Some(self.some_crash()));
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn some_crash(&self) -> Crash {
        let rng = &self.rng;
        match rng.below(8) {
            0..=3 => Crash::Kill,
            // Acknowledged bytes that the disk had not kept after all: rare, and never unnoticed.
            4 if rng.once_in(6) => Crash::Loss { bytes: usize::try_from(rng.between(1, 3_000)).expect("small") },
            _ => Crash::Power {
                keep: rng.index(30_000),
                zeros: if rng.once_in(4) { rng.index(5_000) } else { 0 },
                index_lost: rng.once_in(3),
            },
        }
    }

    /// The orchestrator, if it answers.
    pub(crate) fn answering(&self) -> Option<Running> {
        self.running.borrow().clone().filter(|running| running.ready)
    }

    /// Has the orchestrator's process do something, over a connection that may break on either way.
    pub(crate) async fn call<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        work: impl FnOnce(Rc<Orchestrator>) -> F,
    ) -> Result<T, Gone> {
        let running = self.answering();
        let Some(running) = running.filter(|_| !self.fault(self.scenario.bad_bus / 3)) else {
            self.sleep(500).await;
            return Err(Gone);
        };
        let lost = self.fault(self.scenario.bad_bus / 3);
        let (answer, answered) = oneshot::channel();
        let work = work(running.orchestrator);
        self.exec.spawn(running.process, async move {
            // Whoever asked may be dead.
            let _gone = answer.send(work.await);
        });
        let answer = answered.await.map_err(|_| Gone)?;
        if lost { Err(Gone) } else { Ok(answer) }
    }

    /// Waits for a message.
    pub(crate) async fn next(&self, queue: &Queue, holder: Process) -> Item {
        loop {
            let bus = Arc::clone(&self.bus);
            let mut changed = std::pin::pin!(bus.changed.notified());
            changed.as_mut().enable();
            match self.bus.take(queue, holder, |count| self.rng.index(count)) {
                Ok(item) => return item,
                Err(Some(at)) => {
                    let wait = at.saturating_sub(self.exec.now());
                    self.exec.timeout(wait, changed).await;
                }
                Err(None) => changed.await,
            }
        }
    }

    /// Publishes, for as long as it takes, as workers and reviewers do.
    pub(crate) async fn publish(&self, message: Message) {
        while !self.bus.send(message.clone()) {
            self.sleep(700).await;
        }
    }

    /// Whether an oracle has seen something that must not be.
    pub(crate) fn failure(&self) -> Option<String> {
        self.oracle.borrow().failure.clone()
    }

    pub(crate) fn fail(&self, what: String) {
        self.oracle.borrow_mut().fail(what);
    }
}
