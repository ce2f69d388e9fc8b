//! A worker that follows the protocol at the level of records: it takes a lease, keeps it alive, does what the job says
//! and reports. It is also slow, dies, comes too late, and sometimes lies.

mod apply;
mod effects;
mod jobs;
mod lies;
pub(crate) mod records;

use std::cell::Cell;
use std::rc::Rc;

use checkrein_shared::bus::Queue;
use checkrein_shared::coordinator::{Directive, LeaseAnswer, LeaseRequest, Receipt};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::records::{AttemptOutcome, CheckpointMessage, Job, JobKind, JobMessage};

use crate::exec::Process;
use crate::world::World;
use crate::{keys, process};

/// How often a lease is renewed, and how long one lasts, in milliseconds.
const BEAT: u64 = 10_000;
const LEASE: u64 = 30_000;

/// One attempt in a worker's hands.
pub(crate) struct Attempt {
    pub(crate) world: Rc<World>,
    pub(crate) process: Process,
    pub(crate) me: InstanceId,
    pub(crate) job: Job,
    /// Until when the lease is known to live.
    leased_until: Cell<u64>,
    order: Cell<Directive>,
}

/// What became of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Accepted,
    Refused,
    Lost,
}

pub(crate) async fn run(world: Rc<World>, process: Process, number: usize) {
    let me = keys::worker(number);
    loop {
        let item = world.next(&Queue::Jobs(process::pool()), process).await;
        let Ok(message) = item.message.parse::<JobMessage>("job message") else {
            world.bus.reject(item.tag);
            continue;
        };
        let taken = take(&world, process, &me, &message).await;
        world.bus.ack(item.tag);
        if let Some(attempt) = taken {
            world.say(|| format!("{me} works: {} epoch {}", attempt.job.kind.as_str(), attempt.job.epoch));
            attempt.carry_out().await;
        }
    }
}

async fn take(world: &Rc<World>, process: Process, me: &InstanceId, message: &JobMessage) -> Option<Attempt> {
    world.sleep(world.rng.below(200)).await;
    for _ in 0..20 {
        let request = LeaseRequest {
            task_id: message.task_id.clone(),
            job_id: message.job_id.clone(),
            epoch: message.epoch,
            worker: me.clone(),
        };
        let asked_at = world.exec.now();
        let answer = world.call(|o| async move { o.coordinator().take_lease(request).await }).await;
        match answer {
            Ok(Ok(LeaseAnswer::Granted { job, .. })) => {
                world.oracle.borrow_mut().leased(&job);
                return Some(Attempt {
                    world: world.clone(),
                    process,
                    me: me.clone(),
                    job: *job,
                    leased_until: Cell::new(asked_at + LEASE),
                    order: Cell::new(Directive::Continue),
                });
            }
            Ok(Ok(LeaseAnswer::Refused { .. })) => return None,
            Ok(Err(_)) | Err(_) => world.sleep(1_000).await,
        }
    }
    None
}

impl Attempt {
    async fn carry_out(&self) {
        let world = &self.world;
        if world.fault(world.scenario.misconduct) && lies::tell(self).await {
            return;
        }
        match self.job.kind.clone() {
            JobKind::Step { step, .. } => jobs::step(self, &step).await,
            JobKind::Apply { grant, changeset } => apply::run(self, &grant, &changeset).await,
            JobKind::Rebase => jobs::rebase(self).await,
            JobKind::Evidence { .. } => jobs::evidence(self).await,
        }
    }

    /// What the orchestrator last said, or that the lease is over.
    pub(crate) fn order(&self) -> Directive {
        if self.world.exec.now() >= self.leased_until.get() { Directive::Lost } else { self.order.get() }
    }

    pub(crate) async fn beat(&self) {
        let (task, epoch, me) = (self.job.task_id.clone(), self.job.epoch, self.me.clone());
        let asked_at = self.world.exec.now();
        let answer = self.world.call(|o| async move { o.coordinator().heartbeat(&task, epoch, &me).await }).await;
        if let Ok(Ok(directive)) = answer {
            self.order.set(directive);
            self.leased_until.set(asked_at + LEASE);
        }
    }

    /// Works for some time and keeps the lease alive; ends early where it is told to.
    pub(crate) async fn work(&self, millis: u64) -> Directive {
        let world = &self.world;
        if world.fault(world.scenario.misconduct) {
            // Stopped, like a laptop that sleeps: it knows nothing of what happens meanwhile.
            world.say(|| format!("{} sleeps", self.me));
            world.sleep(world.rng.between(20_000, 90_000)).await;
        }
        let end = world.exec.now() + millis;
        loop {
            let left = end.saturating_sub(world.exec.now());
            if left == 0 || self.order() != Directive::Continue {
                return self.order();
            }
            world.sleep(left.min(BEAT)).await;
            if left >= BEAT {
                self.beat().await;
            }
        }
    }

    /// Says how the attempt ended.
    pub(crate) async fn report(&self, outcome: AttemptOutcome) {
        let message = records::attempt(self, outcome);
        if self.world.fault(self.world.scenario.bad_bus) {
            self.world.publish(message.clone()).await;
        }
        self.world.publish(message).await;
    }

    /// Submits a checkpoint and waits until it is known what became of it.
    pub(crate) async fn submit(&self, message: &CheckpointMessage, hash: Digest) -> Sent {
        let body = records::envelope("checkpoint", &message.task_id, message.epoch, message);
        for round in 0_u64.. {
            if round % 6 == 0 {
                self.world.publish(body.clone()).await;
            }
            self.world.sleep(400 + round.min(10) * 500).await;
            let (task, id) = (message.task_id.clone(), message.checkpoint_id.clone());
            let receipt = self.world.call(|o| async move { o.receipt_now(&task, &id, hash).await }).await;
            match receipt {
                Ok(Ok(Some(Receipt::Accepted))) => {
                    self.world.oracle.borrow_mut().received(&message.task_id, hash);
                    return Sent::Accepted;
                }
                Ok(Ok(Some(Receipt::Refused { .. })) | Err(checkrein_shared::coordinator::Error::Refused(_))) => {
                    return Sent::Refused;
                }
                _ => {}
            }
            self.beat().await;
            if self.order() == Directive::Lost {
                return Sent::Lost;
            }
        }
        Sent::Lost
    }
}
