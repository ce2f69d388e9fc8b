//! What the orchestrator, or this process's own end, wants of a running job.
//!
//! Orders only ever become stricter. A lease that could not be renewed in time
//! is a lost one: nothing may be reported under it any more. This module kills
//! nothing itself; jobs watch their orders.

use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::coordinator::{Coordinator, Directive, Error};
use checkrein_shared::ids::{InstanceId, TaskId};
use tokio::sync::watch;
use tokio::time::Instant;

/// What to do, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Go on.
    Continue,
    /// Let the command end if it does so soon, write a checkpoint, and park.
    Park,
    /// This process ends: kill the command, keep what there is, and give the job back.
    Exit,
    /// Kill the command and report what there is.
    Stop,
    /// Kill the command and report nothing.
    Lost,
}

impl From<Directive> for Order {
    fn from(directive: Directive) -> Self {
        match directive {
            Directive::Continue => Self::Continue,
            Directive::Park => Self::Park,
            Directive::Stop => Self::Stop,
            Directive::Lost => Self::Lost,
        }
    }
}

/// Gives orders to one job.
#[derive(Debug, Clone)]
pub(crate) struct Giver(watch::Sender<Order>);

/// The orders of one job.
#[derive(Debug, Clone)]
pub(crate) struct Orders(watch::Receiver<Order>);

/// A job's two ends, beginning with [`Order::Continue`].
pub(crate) fn channel() -> (Giver, Orders) {
    let (sender, receiver) = watch::channel(Order::Continue);
    (Giver(sender), Orders(receiver))
}

impl Giver {
    /// Gives an order; a milder one than before changes nothing.
    pub(crate) fn give(&self, order: Order) {
        self.0.send_if_modified(|now| {
            let stricter = order > *now;
            *now = order.max(*now);
            stricter
        });
    }
}

impl Orders {
    /// The strictest order so far.
    pub(crate) fn now(&self) -> Order {
        *self.0.borrow()
    }

    /// Whether nothing may be reported any more.
    pub(crate) fn lost(&self) -> bool {
        self.now() == Order::Lost
    }

    /// Waits for an order of at least this strictness; for ever where none comes.
    pub(crate) async fn at_least(&mut self, wanted: Order) {
        if self.0.wait_for(|now| *now >= wanted).await.is_err() {
            // The giver is gone without such an order, so it will never come.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until a running command has to be killed: at once for strict orders, after `grace` for a pause.
    pub(crate) async fn kill(mut self, grace: Duration) {
        let mut strict = self.clone();
        let parked = async {
            self.at_least(Order::Park).await;
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            () = strict.at_least(Order::Exit) => {}
            () = parked => {}
        }
    }
}

impl Orders {
    /// Waits until an effect that is under way has to be killed: a pause waits for its end, and the end of this process
    /// for `grace`.
    pub(crate) async fn kill_effect(mut self, grace: Duration) {
        let mut strict = self.clone();
        let exiting = async {
            self.at_least(Order::Exit).await;
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            () = strict.at_least(Order::Stop) => {}
            () = exiting => {}
        }
    }
}

/// Whose lease is kept.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) task: TaskId,
    pub(crate) epoch: u64,
    pub(crate) worker: InstanceId,
    pub(crate) length: Duration,
}

/// Renews a lease three times in its length and passes on what the answers say. Returns when the lease is lost.
pub(crate) async fn keep(coordinator: Arc<dyn Coordinator>, lease: Lease, giver: Giver) {
    let period = (lease.length / 3).max(Duration::from_millis(1));
    // A tenth is left for killing, so that no command outlives the lease that it runs under.
    let usable = lease.length - lease.length / 10;
    let mut until = Instant::now() + usable;
    loop {
        tokio::time::sleep(period.min(until.saturating_duration_since(Instant::now()))).await;
        let asked_at = Instant::now();
        let heartbeat = coordinator.heartbeat(&lease.task, lease.epoch, &lease.worker);
        match tokio::time::timeout(period, heartbeat).await {
            Ok(Ok(directive)) => {
                until = asked_at + usable;
                giver.give(directive.into());
            }
            Ok(Err(Error::Refused(reason))) => {
                tracing::warn!(task.id = %lease.task, epoch = lease.epoch, reason, "the lease is refused");
                giver.give(Order::Lost);
            }
            Ok(Err(Error::Unavailable(reason))) => {
                tracing::warn!(task.id = %lease.task, epoch = lease.epoch, reason, "a heartbeat failed");
            }
            Err(_) => tracing::warn!(task.id = %lease.task, epoch = lease.epoch, "a heartbeat was not answered"),
        }
        if Instant::now() >= until {
            tracing::warn!(task.id = %lease.task, epoch = lease.epoch, "the lease could not be renewed in time");
            giver.give(Order::Lost);
        }
        if *giver.0.borrow() == Order::Lost {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use checkrein_shared::coordinator::{
        ClaimAnswer, ClaimRequest, ConditionsReport, DriftReport, LeaseAnswer, LeaseRequest, Receipt, RedeemAnswer,
        RedeemRequest, SaveAnswer, SaveRequest, Settlement, Watched,
    };
    use checkrein_shared::digest::Digest;
    use checkrein_shared::ids::CheckpointId;
    use checkrein_shared::records::Bindings;

    use super::*;

    /// Answers heartbeats from a list, and is unavailable when it is used up.
    struct Answers(Mutex<Vec<Directive>>);

    fn other<T>() -> Result<T, Error> {
        Err(Error::Refused("only heartbeats here".into()))
    }

    #[async_trait]
    impl Coordinator for Answers {
        async fn take_lease(&self, _: LeaseRequest) -> Result<LeaseAnswer, Error> {
            other()
        }
        async fn heartbeat(&self, _: &TaskId, _: u64, _: &InstanceId) -> Result<Directive, Error> {
            self.0.lock().unwrap().pop().ok_or_else(|| Error::Unavailable("gone".into()))
        }
        async fn receipt(&self, _: &TaskId, _: &CheckpointId, _: Digest) -> Result<Receipt, Error> {
            other()
        }
        async fn redeem(&self, _: RedeemRequest) -> Result<RedeemAnswer, Error> {
            other()
        }
        async fn claim_effect(&self, _: ClaimRequest) -> Result<ClaimAnswer, Error> {
            other()
        }
        async fn settle_effect(&self, _: Settlement) -> Result<(), Error> {
            other()
        }
        async fn save_point(&self, _: SaveRequest) -> Result<SaveAnswer, Error> {
            other()
        }
        async fn conditions(&self, _: ConditionsReport) -> Result<(), Error> {
            other()
        }
        async fn report_drift(&self, _: DriftReport) -> Result<(), Error> {
            other()
        }
        async fn watched(&self) -> Result<Vec<Watched>, Error> {
            other()
        }
        async fn current_bindings(&self, _: &TaskId) -> Result<Option<Bindings>, Error> {
            other()
        }
    }

    async fn kept(answers: &[Directive]) -> (Duration, Order) {
        let answers = Arc::new(Answers(Mutex::new(answers.iter().rev().copied().collect())));
        let lease = Lease {
            task: TaskId::from_random([1; 5]),
            epoch: 1,
            worker: "worker-1".parse().unwrap(),
            length: Duration::from_secs(30),
        };
        let (giver, orders) = channel();
        let started = Instant::now();
        keep(answers, lease, giver).await;
        (started.elapsed(), orders.now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_nobody_renews_is_lost_before_it_ends() {
        let (after, order) = kept(&[]).await;
        assert_eq!(order, Order::Lost);
        assert!(after < Duration::from_secs(30) && after >= Duration::from_secs(20), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn every_answer_renews_it() {
        let (after, order) = kept(&[Directive::Continue; 10]).await;
        assert_eq!(order, Order::Lost);
        assert!(after > Duration::from_secs(100) && after < Duration::from_secs(130), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_ends_at_once() {
        let (after, order) = kept(&[Directive::Continue, Directive::Lost, Directive::Continue]).await;
        assert_eq!((after, order), (Duration::from_secs(20), Order::Lost));
    }

    #[tokio::test(start_paused = true)]
    async fn orders_only_become_stricter() {
        let (giver, orders) = channel();
        giver.give(Order::Stop);
        giver.give(Order::Park);
        assert_eq!(orders.now(), Order::Stop);
    }

    #[tokio::test(start_paused = true)]
    async fn an_effect_is_left_alone_by_a_pause_and_given_time_by_the_workers_end() {
        let grace = Duration::from_secs(30);
        let (giver, orders) = channel();
        giver.give(Order::Park);
        let waited = tokio::time::timeout(Duration::from_secs(86_400), orders.clone().kill_effect(grace)).await;
        assert!(waited.is_err(), "a pause never kills it");
        giver.give(Order::Exit);
        let started = Instant::now();
        orders.clone().kill_effect(grace).await;
        assert_eq!(started.elapsed(), grace);
        giver.give(Order::Stop);
        orders.kill_effect(grace).await;
        assert_eq!(started.elapsed(), grace, "a stop kills at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_leaves_a_command_its_grace_and_a_stop_does_not() {
        let grace = Duration::from_secs(60);
        let (giver, orders) = channel();
        giver.give(Order::Park);
        let started = Instant::now();
        orders.clone().kill(grace).await;
        assert_eq!(started.elapsed(), grace);
        giver.give(Order::Stop);
        orders.kill(grace).await;
        assert_eq!(started.elapsed(), grace);
    }
}
