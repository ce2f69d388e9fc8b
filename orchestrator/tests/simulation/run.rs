//! One simulation from its seed to its end: faults first, then calm, then somebody who brings everything to an end.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use checkrein_orchestrator::lifecycle::{
    ATTEMPT_TABLE, EFFECT_TABLE, GRANT_TABLE, NewTask, PolicyPin, RULING_TABLE, SpecState, State, VERDICT_TABLE,
};
use checkrein_orchestrator::store::{CommitError, Store};
use checkrein_orchestrator::{Clock as _, EngineError};
use checkrein_shared::api::Action;
use checkrein_shared::ids::TaskId;
use checkrein_shared::json;
use checkrein_shared::records::{Budgets, TaskSpec, WorkspaceSpec};

use crate::exec::Process;
use crate::oracle::rests;
use crate::target::Target;
use crate::trace::Trace;
use crate::world::World;
use crate::{crew, people, process};

/// In calm weather every task must come to rest within this time.
const REST_WITHIN: u64 = 4 * 3_600_000;

/// No simulation needs more polls; one that does goes round in circles.
const POLLS_MAX: u64 = 400_000;

/// No task has more rows in one table.
const ROWS_MAX: usize = 10_000;

/// What came of a simulation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) records: u64,
    /// How much time passed in it, in milliseconds.
    pub(crate) millis: u64,
    pub(crate) state_bytes_max: usize,
    pub(crate) failure: Option<String>,
}

pub(crate) fn simulate(seed: u64, trace: Trace) -> (Report, Rc<World>) {
    let world = World::new(seed, trace);
    let outside = world.exec.process();
    process::start(&world);
    crew::hire_all(&world);
    world.exec.spawn(outside, submit_all(world.clone()));
    run(&world, world.scenario.chaos);
    world.weather.chaos.store(false, Ordering::Relaxed);
    world.blobs.failures.store(0, Ordering::Relaxed);
    world.say(|| "the weather is calm from now on".to_owned());
    crew::hire_all(&world);
    let end = world.exec.process();
    world.exec.spawn(end, bring_to_an_end(world.clone(), end));
    run(&world, u64::MAX);
    if world.failure().is_none() {
        check_end(&world);
    }
    world.exec.end();
    let report = Report {
        records: world.oracle.borrow().records,
        millis: world.exec.now(),
        state_bytes_max: world.oracle.borrow().state_bytes_max(),
        failure: world.failure(),
    };
    (report, world)
}

/// Lets things happen until a moment, or until something is wrong or everything has ended.
fn run(world: &Rc<World>, until: u64) {
    while world.failure().is_none() && !world.ended.get() && world.exec.step(&world.rng, until) {
        world.oracle.borrow_mut().look(&world.disk);
        for message in world.bus.take_published() {
            world.oracle.borrow_mut().published(&message);
        }
        if world.weather.take_kill() {
            world.say(|| "the orchestrator dies: before it hears that a message was taken".to_owned());
            world.crash.set(Some(world.some_crash()));
        }
        if let Some(crash) = world.crash.take() {
            process::crash(world, crash);
        }
        if world.exec.polls.get() > POLLS_MAX {
            world.fail(format!("it goes round in circles: {POLLS_MAX} polls"));
        }
    }
    world.exec.pass_to(until.min(world.exec.now().max(world.scenario.chaos)));
}

async fn submit_all(world: Rc<World>) {
    for number in 0..world.scenario.tasks {
        let spec = spec(&world, number);
        let mut random = [0; 5];
        random.iter_mut().for_each(|byte| *byte = u8::try_from(world.rng.below(256)).expect("below 256"));
        let id = TaskId::from_random(random);
        world.targets.borrow_mut().insert(spec.workspace.root_id(), Target::new());
        while !submit(&world, &id, &spec).await {
            world.sleep(1_000).await;
        }
        world.tasks.borrow_mut().push(id);
    }
    let process = world.exec.process();
    world.exec.spawn(process, people::run(world.clone()));
    world.exec.spawn(process, reap(world.clone()));
}

fn spec(world: &World, number: usize) -> TaskSpec {
    TaskSpec {
        format: 1,
        name: format!("task {number}"),
        objective: "do it".into(),
        spec: None,
        constraints: Vec::new(),
        workspace: WorkspaceSpec::Directory(format!("/srv/project-{number}")),
        labels: BTreeMap::new(),
        agent: None,
        plan: world.scenario.plan(),
        budgets: Budgets::default(),
    }
}

async fn submit(world: &World, id: &TaskId, spec: &TaskSpec) -> bool {
    let policy = world.oracle.borrow().policy();
    let WorkspaceSpec::Directory(workspace) = &spec.workspace;
    let new = NewTask {
        id: id.clone(),
        name: spec.name.clone(),
        origin: None,
        by: people::PEOPLE[0].to_owned(),
        at: world.clock.now(),
        spec: SpecState {
            record: world.blobs.keep(&json::canonical(spec).expect("a specification")),
            hash: spec.spec_hash(),
            spec_ref: spec.spec_ref().to_owned(),
            objective: spec.objective.clone(),
            workspace: workspace.clone(),
            constraints: policy.compiled.policy().constraint_refs(spec),
            labels: spec.labels.clone(),
            budgets: spec.budgets.clone(),
        },
        policy: PolicyPin { name: policy.name.to_owned(), digest: world.blobs.keep(&policy.bytes) },
        root_id: spec.workspace.root_id(),
        plan: spec.plan.clone(),
    };
    match world.call(|o| async move { o.engine().create(new).await }).await {
        // The answer to the first try was lost.
        Ok(Ok(_) | Err(EngineError::Commit(CommitError::Conflict { .. }))) => true,
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Kills somebody now and then, whatever they are doing.
async fn reap(world: Rc<World>) {
    while world.chaos() {
        world.sleep(world.rng.between(5_000, 120_000)).await;
        match world.rng.below(3) {
            0 if world.chaos() && world.scenario.crash_once_in < 1_000 => world.crash.set(Some(world.some_crash())),
            _ => {
                crew::kill_one(&world);
                world.sleep(world.rng.below(30_000)).await;
                crew::hire_all(&world);
            }
        }
    }
}

/// In calm weather: waits until every task rests, and then does whatever a person can do to end it.
async fn bring_to_an_end(world: Rc<World>, _: Process) {
    for round in 0..60 {
        let tasks = world.tasks.borrow().clone();
        for id in &tasks {
            if !rest(&world, id).await {
                return;
            }
            let state = world.oracle.borrow().task(id).map(|task| task.state.clone());
            let Some(state) = state.filter(|state| !matches!(state, State::Done { .. })) else { continue };
            if round < 40 { help(&world, id, &state).await } else { cancel(&world, id).await }
        }
        let all = world.oracle.borrow().tasks().all(|task| matches!(task.state, State::Done { .. }));
        if all && tasks.len() == world.scenario.tasks {
            // What is still on its way arrives and changes nothing.
            world.sleep(20_000).await;
            world.ended.set(true);
            return;
        }
        world.sleep(1_000).await;
    }
    world.fail("a task can't be brought to an end".to_owned());
}

async fn rest(world: &World, id: &TaskId) -> bool {
    let until = world.exec.now() + REST_WITHIN;
    loop {
        let state = world.oracle.borrow().task(id).map(|task| (rests(task), task.state.clone()));
        match state {
            Some((true, _)) => return true,
            Some((false, state)) if world.exec.now() > until => {
                world.fail(format!("{id} does not come to rest: {state:?}"));
                return false;
            }
            _ => world.sleep(3_000).await,
        }
    }
}

async fn help(world: &World, id: &TaskId, state: &State) {
    match state {
        State::Waiting { .. } | State::Reviewing { .. } => {
            let settlement = world.oracle.borrow().task(id).and_then(|task| people::settlement(world, task));
            if let Some(action) = settlement {
                people::perform(world, id, action, people::PEOPLE[0]).await;
                return;
            }
            for by in people::PEOPLE {
                let hash = world.oracle.borrow().task(id).and_then(|task| Some(task.items().first()?.hash));
                let Some(checkpoint_hash) = hash else { return };
                people::perform(world, id, Action::Approve { checkpoint_hash, note: None }, by).await;
            }
        }
        State::Paused { .. } | State::Blocked { .. } => {
            people::perform(world, id, Action::Resume {}, people::PEOPLE[0]).await;
        }
        State::Held { by, started_from, .. } => {
            let by = people::PEOPLE.iter().find(|name| *name == by).copied().unwrap_or(people::PEOPLE[0]);
            match started_from {
                Some(from) => {
                    let action = Action::HandBack { tree: *from, started_from: *from, note: None };
                    people::perform(world, id, action, by).await;
                }
                None => cancel(world, id).await,
            }
        }
        _ => {}
    }
}

async fn cancel(world: &World, id: &TaskId) {
    people::perform(world, id, Action::Cancel {}, people::PEOPLE[0]).await;
}

/// What must hold when everything is over.
fn check_end(world: &World) {
    // The strict reading is as dear as all the rest, and what it checks does not depend on what happened.
    match world.disk.verify(world.rng.once_in(16)) {
        Ok(head) => world.oracle.borrow_mut().ended(head),
        Err(what) => world.fail(format!("the journal does not verify: {what}")),
    }
    let Some(running) = world.answering() else { return world.fail("the orchestrator does not run".to_owned()) };
    let waiting = people::futures_now(running.store.pending_messages(10));
    match waiting {
        Some(Ok(waiting)) if waiting.is_empty() => {}
        other => world.fail(format!("messages wait in the outbox for ever: {other:?}")),
    }
    check_rows(world, running.store.as_ref());
}

/// Every row that was ever written can be read, as it was written last, and no other.
fn check_rows(world: &World, store: &dyn Store) {
    for id in world.tasks.borrow().iter() {
        for table in [VERDICT_TABLE, GRANT_TABLE, RULING_TABLE, EFFECT_TABLE, ATTEMPT_TABLE] {
            let read = people::futures_now(store.rows(table, Some(id), None, ROWS_MAX));
            let Some(Ok(rows)) = read else { return world.fail(format!("{id}: the rows of `{table}` can't be read")) };
            let read = rows.into_iter().map(|row| (row.key, row.value)).collect();
            world.oracle.borrow_mut().read_back(id, table, &read);
        }
    }
}
