//! People: they edit the target, approve, reject, claim, pause, take over, amend and cancel, whenever they like.

use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use checkrein_orchestrator::Clock as _;
use checkrein_orchestrator::lifecycle::{About, EventKind, State, Task};
use checkrein_shared::api::{Action, Amendment};
use checkrein_shared::coordinator::DriftReport;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{JobKind, SpecText};
use checkrein_shared::time::Timestamp;
use checkrein_shared::tree::node;

use crate::keys;
use crate::target;
use crate::world::World;

/// Who there is. The first one submits all tasks.
pub(crate) const PEOPLE: &[&str] = &["ada", "bob", "cem"];

/// Acts for as long as there are faults.
pub(crate) async fn run(world: Rc<World>) {
    while world.chaos() {
        world.sleep(world.rng.between(1, world.scenario.people * 2)).await;
        let task = world.rng.pick(&world.tasks.borrow()).clone();
        match world.rng.below(10) {
            0 | 1 => edit(&world, &task),
            2 => watch(&world).await,
            3 => odd(&world, &task).await,
            _ => act(&world, &task).await,
        }
    }
}

/// The newest state of a task, as a page shows it.
pub(crate) async fn look(world: &World, task: &TaskId) -> Option<Task> {
    let id = task.clone();
    let loaded = world.call(|o| async move { o.engine().task(&id).await }).await;
    loaded.ok()?.ok().map(|(task, _)| task)
}

/// Somebody works in the target, too.
fn edit(world: &World, task: &TaskId) {
    let root = world.oracle.borrow().root(task);
    let mut targets = world.targets.borrow_mut();
    if let Some(target) = root.and_then(|root| targets.get_mut(&root)) {
        world.say(|| "a person edits the target".to_owned());
        target::edit(&mut target.files, "a person", &world.rng);
    }
}

/// A watcher compares targets with what they should be.
async fn watch(world: &World) {
    let Ok(Ok(watched)) = world.call(|o| async move { o.coordinator().watched().await }).await else { return };
    for watched in watched {
        let target = world.targets.borrow().get(&watched.root_id).map(|target| target.measure(&world.blobs).1);
        let Some(target) = target.filter(|target| *target != watched.base) else { continue };
        let (task_id, base) = (watched.task_id, watched.base);
        let report = DriftReport { task_id, base, target, paths: vec!["a".into()] };
        // It looks again later.
        let _missed = world.call(|o| async move { o.coordinator().report_drift(report).await }).await;
    }
}

async fn act(world: &World, id: &TaskId) {
    let Some(task) = look(world, id).await else { return };
    let by = *world.rng.pick(PEOPLE);
    let Some(action) = choose(world, &task) else { return };
    // They have looked at the page for a while.
    world.sleep(world.rng.below(5_000)).await;
    perform(world, id, action, by).await;
}

/// Does something, and says whether it was taken.
pub(crate) async fn perform(world: &World, id: &TaskId, action: Action, by: &'static str) -> bool {
    world.say(|| format!("{by} wants {}", name(&action)));
    let task = id.clone();
    let acted = world.call(|o| async move { o.api().act(&task, action, by).await }).await;
    match acted {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            world.say(|| format!("it is refused: {error}"));
            false
        }
        Err(_) => false,
    }
}

fn name(action: &Action) -> String {
    format!("{action:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn choose(world: &World, task: &Task) -> Option<Action> {
    let rng = &world.rng;
    let shown = task.items().first().map(|item| item.hash);
    let hash = match shown {
        Some(hash) if rng.percent(85) => hash,
        _ => Digest::of("what was on another page"),
    };
    let text = || "because".to_owned();
    if rng.percent(70)
        && let Some(action) = settlement(world, task)
    {
        return Some(action);
    }
    // Those who change their minds do it when it is nearly too late.
    if let State::Queued { job } | State::Running { job, .. } = &task.state
        && matches!(job, JobKind::Apply { .. })
        && rng.percent(25)
    {
        return Some(Action::Amend { amendment: amendment(world, task) });
    }
    Some(match (&task.state, rng.below(20)) {
        (State::Held { started_from, .. }, 0..=13) => {
            let from = (*started_from)?;
            Action::HandBack { tree: edited(world, from)?, started_from: from, note: None }
        }
        (State::Paused { .. } | State::Blocked { .. }, 0..=9) => Action::Resume {},
        (State::Paused { .. }, 10..=13) => Action::Amend { amendment: amendment(world, task) },
        (_, 0..=6) if shown.is_some() => Action::Approve { checkpoint_hash: hash, note: None },
        (_, 7 | 8) if shown.is_some() => Action::RequestChanges { checkpoint_hash: hash, text: text() },
        (_, 9) if shown.is_some() => Action::Reject { checkpoint_hash: hash, reason: text() },
        (_, 10) => Action::Claim {},
        (_, 11 | 12) => Action::Pause {},
        (_, 13) => Action::Resume {},
        (_, 14) => Action::Takeover { folder: "/home/somebody/work".into() },
        (_, 15 | 16) => Action::Amend { amendment: amendment(world, task) },
        (_, 17 | 18) => {
            let finding = task.findings.first()?.finding.id.to_string();
            Action::CloseFinding { finding, reason: text() }
        }
        (_, 19) if rng.once_in(4) => Action::Cancel {},
        _ => return None,
    })
}

/// What a person says who was asked whether an effect happened: how it really is.
pub(crate) fn settlement(world: &World, task: &Task) -> Option<Action> {
    let About::Effect { key, .. } = task.items().first()?.about else { return None };
    let outside = world.oracle.borrow().outside(key);
    // Whoever looks closely sees that it is still at work, and waits.
    let done = outside.happened > 0;
    (outside.under_way == 0).then(|| Action::SettleEffect { key, done, reason: "I have looked".into() })
}

/// The tree that a person hands back.
fn edited(world: &World, from: Digest) -> Option<Digest> {
    let loaded = node::load_tree(world.blobs.as_ref(), from);
    let manifest = futures_now(loaded)?.ok()?;
    let mut files = target::files(&manifest, &world.blobs);
    if world.rng.percent(60) {
        target::edit(&mut files, "a person", &world.rng);
    }
    Some(target::store(&files, &world.blobs).1)
}

/// The result of a future that has nothing to wait for.
pub(crate) fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

fn amendment(world: &World, task: &Task) -> Amendment {
    let number = world.rng.below(3);
    match world.rng.below(3) {
        0 => Amendment { objective: Some(format!("do it in the way {number}")), ..Amendment::default() },
        1 => {
            let spec = SpecText { spec_ref: "inline".into(), text: format!("text {number}") };
            Amendment { spec: Some(spec), ..Amendment::default() }
        }
        _ => {
            let mut plan = task.plan.clone();
            if let Some(step) = plan.steps.last_mut() {
                step.risk =
                    if number == 0 { checkrein_shared::records::Risk::R1 } else { checkrein_shared::records::Risk::R2 };
            }
            Amendment { plan: Some(plan), ..Amendment::default() }
        }
    }
}

/// What is rarer: a key that others may have had, a clock that jumps, a disk that is away.
async fn odd(world: &World, id: &TaskId) {
    match world.rng.below(4) {
        0 => {
            let reviewer = keys::reviewer(world.rng.index(keys::REVIEWERS_MAX));
            let now = world.clock.now().as_millis();
            let back = i64::try_from(world.rng.below(600_000)).unwrap_or(0);
            let since = Timestamp::from_millis(now - back);
            world.say(|| format!("the key of {reviewer} is compromised since {since}"));
            let (task, event) = (id.clone(), EventKind::KeyCompromised { reviewer, since });
            let _missed = world.call(|o| async move { o.engine().handle(&task, event, None).await }).await;
        }
        1 => {
            let jump = i64::try_from(world.rng.below(2_400_000)).unwrap_or(0) - 1_200_000;
            // How long a command may still be under way is told by this clock: see docs/assurance.md.
            let jump = if world.scenario.effectful { jump.min(-jump) } else { jump };
            world.say(|| format!("the wall clock jumps by {jump} ms"));
            world.clock.skew.fetch_add(jump, Ordering::Relaxed);
        }
        _ => world.blobs.failures.store(u32::try_from(world.rng.between(1, 3)).unwrap_or(1), Ordering::Relaxed),
    }
}
