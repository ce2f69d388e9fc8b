//! Runs futures one poll at a time, in an order that the seed chooses, on a clock that jumps to whatever is due.
//!
//! Tasks belong to a process; killing it drops them where they stand, as `kill -9` does. Nothing here ever sleeps.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::rng::Rng;

/// A process: what dies together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process(pub(crate) u64);

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks that can go on.
type Ready = Arc<Mutex<BTreeSet<u64>>>;

struct Task {
    process: Process,
    work: Work,
    waker: Waker,
}

struct Bell {
    id: u64,
    ready: Ready,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(self.id);
    }
}

/// The executor.
pub(crate) struct Exec {
    tasks: RefCell<BTreeMap<u64, Task>>,
    ready: Ready,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    now: Arc<AtomicU64>,
    next: Cell<u64>,
    killed: RefCell<Vec<Process>>,
    /// How many polls there were.
    pub(crate) polls: Cell<u64>,
}

impl Exec {
    /// An executor over a clock of milliseconds.
    pub(crate) fn new(now: Arc<AtomicU64>) -> Self {
        Self {
            tasks: RefCell::default(),
            ready: Ready::default(),
            timers: RefCell::default(),
            now,
            next: Cell::new(0),
            killed: RefCell::default(),
            polls: Cell::new(0),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Lets time pass with nothing happening.
    pub(crate) fn pass_to(&self, millis: u64) {
        self.now.fetch_max(millis, Ordering::Relaxed);
    }

    fn number(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.number())
    }

    pub(crate) fn spawn(&self, process: Process, work: impl Future<Output = ()> + 'static) {
        let id = self.number();
        let waker = Waker::from(Arc::new(Bell { id, ready: Arc::clone(&self.ready) }));
        self.tasks.borrow_mut().insert(id, Task { process, work: Box::pin(work), waker });
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Has a process dropped before anything else runs.
    pub(crate) fn kill(&self, process: Process) {
        self.killed.borrow_mut().push(process);
    }

    /// Drops what was killed. Dropping may wake others, and nothing else.
    pub(crate) fn bury(&self) {
        loop {
            let Some(process) = self.killed.borrow_mut().pop() else { return };
            let mut tasks = self.tasks.borrow_mut();
            let (dead, alive) = std::mem::take(&mut *tasks).into_iter().partition(|(_, task)| task.process == process);
            *tasks = alive;
            drop(tasks);
            let dead: BTreeMap<u64, Task> = dead;
            drop(dead);
        }
    }

    /// Drops everything. Tasks hold what holds the executor, so that otherwise none of it would ever be freed.
    pub(crate) fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        drop(timers);
    }

    /// Polls one ready task, or jumps to the next timer before `until`. False where nothing is left to do.
    pub(crate) fn step(&self, rng: &Rng, until: u64) -> bool {
        self.bury();
        let id = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = ready.iter().nth(rng.index(ready.len())).copied();
            if let Some(id) = &chosen {
                ready.remove(id);
            }
            chosen
        };
        match id {
            Some(id) => self.poll(id),
            None => return self.jump(until),
        }
        true
    }

    fn poll(&self, id: u64) {
        // Out of the map while it runs: it may spawn others.
        let Some(mut task) = self.tasks.borrow_mut().remove(&id) else { return };
        self.polls.set(self.polls.get() + 1);
        let waker = task.waker.clone();
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().insert(id, task);
        }
    }

    fn jump(&self, until: u64) -> bool {
        let mut timers = self.timers.borrow_mut();
        let Some((&(at, _), _)) = timers.first_key_value() else { return false };
        if at > until {
            return false;
        }
        self.now.fetch_max(at, Ordering::Relaxed);
        while let Some(entry) = timers.first_entry()
            && entry.key().0 <= at
        {
            entry.remove().wake();
        }
        true
    }

    /// Waits for some milliseconds of virtual time.
    pub(crate) fn sleep(self: &Rc<Self>, millis: u64) -> Sleep {
        Sleep { exec: Rc::clone(self), at: self.now() + millis, registered: None }
    }

    /// Waits for something, but no longer than some milliseconds.
    pub(crate) async fn timeout<T>(self: &Rc<Self>, millis: u64, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let mut sleep = std::pin::pin!(self.sleep(millis));
        std::future::poll_fn(|context| {
            if let Poll::Ready(value) = work.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

/// See [`Exec::sleep`].
pub(crate) struct Sleep {
    exec: Rc<Exec>,
    at: u64,
    registered: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.exec.now() >= self.at && self.registered.is_some() {
            return Poll::Ready(());
        }
        let number = self.registered.unwrap_or_else(|| self.exec.number());
        self.registered = Some(number);
        self.exec.timers.borrow_mut().insert((self.at, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.registered {
            self.exec.timers.borrow_mut().remove(&(self.at, number));
        }
    }
}
