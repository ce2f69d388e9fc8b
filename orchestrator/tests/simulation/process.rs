//! The orchestrator's process: the real one, opened over the simulated disk, its turns taken one by one, and killed at
//! any of them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use checkrein_orchestrator::store::Store as _;
use checkrein_orchestrator::store::simulated::{Crash, SimulatedStore};
use checkrein_orchestrator::{Clock as _, Config, Orchestrator, Routes, Taken};
use checkrein_shared::bus::{Bus, Queue};
use checkrein_shared::ids::InstanceId;

use crate::crew;
use crate::keys::KEYS;
use crate::world::{Running, World};

/// How long it waits after an error.
const PAUSE: u64 = 500;

pub(crate) fn pool() -> checkrein_shared::bus::Pool {
    "sim".parse().expect("a pool")
}

/// Starts it, and everything that it does by itself.
pub(crate) fn start(world: &Rc<World>) {
    let store = match SimulatedStore::open(Arc::clone(&world.disk)) {
        Ok(store) => Arc::new(store),
        Err(error) => return world.fail(format!("the store does not open after a crash: {error}")),
    };
    world.oracle.borrow_mut().reopened(&world.disk, store.head());
    let config = Config {
        instance: InstanceId::try_from("orchestrator".to_owned()).expect("an id"),
        routes: Routes { jobs: pool(), reviews: pool() },
        keys: Arc::clone(&KEYS.ring),
        clock: world.clock.clone(),
        all_inside: world.scenario.all_inside,
    };
    let bus: Arc<dyn Bus> = world.bus.clone();
    let orchestrator = Rc::new(Orchestrator::new(config, store.clone(), world.blobs.clone(), bus));
    orchestrator.engine().know_policy(Arc::clone(&world.oracle.borrow().policy().compiled));
    let process = world.exec.process();
    world.say(|| format!("the orchestrator starts with {} records", store.head().count));
    let running = Running { process, orchestrator, store, ready: false };
    *world.running.borrow_mut() = Some(running.clone());
    world.exec.spawn(process, disk(world.clone(), running.clone()));
    world.exec.spawn(process, boot(world.clone(), running));
}

async fn boot(world: Rc<World>, running: Running) {
    while let Err(error) = running.orchestrator.prepare().await {
        world.say(|| format!("it can't take up what was running yet: {error}"));
        world.sleep(PAUSE).await;
    }
    let ready = Running { ready: true, ..running.clone() };
    *world.running.borrow_mut() = Some(ready);
    let process = running.process;
    for queue in [Queue::InWorker, Queue::InReviewer, Queue::Dead] {
        world.exec.spawn(process, consume(world.clone(), running.clone(), queue));
    }
    world.exec.spawn(process, relay(world.clone(), running.clone()));
    world.exec.spawn(process, timers(world.clone(), running.clone()));
    world.exec.spawn(process, leases(world.clone(), running));
}

/// The two threads of the store, one step at a time.
async fn disk(world: Rc<World>, running: Running) {
    let store = running.store;
    loop {
        store.work().await;
        world.sleep(world.rng.below(3)).await;
        world.may_crash_here("before it appends").await;
        store.write();
        world.may_crash_here("after it appended, before it synced").await;
        world.sleep(world.rng.below(3)).await;
        store.sync();
        world.may_crash_here("after it synced, before the index").await;
        if let Err(error) = store.index() {
            return world.fail(format!("the index does not follow the journal: {error}"));
        }
        world.may_crash_here("after the index, before anybody is answered").await;
        store.answer();
        if world.rng.once_in(20) {
            world.disk.note_head();
        }
    }
}

async fn relay(world: Rc<World>, running: Running) {
    let mut changes = running.store.changes();
    loop {
        changes.borrow_and_update();
        let wait = match running.orchestrator.relay_once().await {
            Ok(true) => 0,
            Ok(false) => 3_600_000,
            Err(_) => PAUSE,
        };
        world.may_crash_here("after it published").await;
        world.exec.timeout(wait, changes.changed()).await;
    }
}

async fn timers(world: Rc<World>, running: Running) {
    let mut changes = running.store.changes();
    loop {
        changes.borrow_and_update();
        let fired = running.orchestrator.fire_timers_once().await;
        let next = running.store.next_timer_at().await;
        let wait = match (fired, next) {
            (Ok(_), Ok(Some(at))) => at.since(world.clock.now()).max(Duration::from_millis(20)),
            (Ok(_), Ok(None)) => Duration::from_secs(3_600),
            _ => Duration::from_millis(PAUSE),
        };
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        world.exec.timeout(wait, changes.changed()).await;
    }
}

async fn leases(world: Rc<World>, running: Running) {
    loop {
        running.orchestrator.expire_leases_once().await;
        world.sleep(10_000).await;
    }
}

async fn consume(world: Rc<World>, running: Running, queue: Queue) {
    loop {
        let item = world.next(&queue, running.process).await;
        let settled = loop {
            let taken = match queue {
                Queue::Dead => running.orchestrator.take_dead(&item.message, item.death).await,
                _ => running.orchestrator.take(&item.message).await,
            };
            match taken {
                Taken::Later(why) => world.say(|| format!("{} is held: {why}", item.message.kind)),
                settled => break settled,
            }
            world.sleep(PAUSE).await;
        };
        world.may_crash_here("before it acknowledges a message").await;
        match settled {
            Taken::Refused(why) => {
                world.say(|| format!("{} is refused: {why}", item.message.kind));
                world.bus.reject(item.tag);
            }
            _ => world.bus.ack(item.tag),
        }
    }
}

/// Ends the process as `crash` says, and starts another one soon.
pub(crate) fn crash(world: &Rc<World>, crash: Crash) {
    let Some(running) = world.running.borrow_mut().take() else { return };
    world.say(|| format!("crash: {crash:?}"));
    world.exec.kill(running.process);
    world.exec.bury();
    world.bus.release(running.process);
    if world.scenario.all_inside {
        world.bus.clear();
        crew::kill_all(world);
    }
    drop(running);
    let loss = matches!(crash, Crash::Loss { .. });
    let backup = loss.then(|| world.disk.backup());
    world.disk.crash(crash);
    if let Some(backup) = backup {
        loss_is_noticed(world, backup);
    }
    let again = world.clone();
    let wait = world.rng.between(50, 20_000);
    world.exec.spawn(world.exec.process(), async move {
        again.sleep(wait).await;
        start(&again);
        if again.scenario.all_inside {
            crew::hire_all(&again);
        }
    });
}

/// A disk that has lost acknowledged records must not be taken for one that never had them.
fn loss_is_noticed(world: &Rc<World>, backup: Vec<Vec<u8>>) {
    let noted = world.disk.noted_head();
    if let Ok(store) = SimulatedStore::open(Arc::clone(&world.disk))
        && store.head().count < noted
    {
        let found = store.head().count;
        world.fail(format!("the journal lost acknowledged records unnoticed: {noted} were noted, {found} are there"));
    }
    world.disk.restore(backup);
}
