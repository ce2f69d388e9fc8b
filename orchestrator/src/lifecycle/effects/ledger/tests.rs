//! Whatever comes in whatever order: `done` stays, and `unknown` starts nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{CallArguments, EFFECT_FORMAT, EffectCall, EffectGate, EffectResult, Handling};
use checkrein_shared::time::Span;
use proptest::prelude::*;

use super::*;

/// How long the command may take.
const LIMIT: Span = Span::from_secs(10);

fn entry(class: EffectClass, handling: Handling) -> EffectEntry {
    let call = EffectCall {
        step: "deploy".parse().unwrap(),
        tool: "step:deploy".into(),
        arguments: CallArguments::Command(vec!["deploy".into()]),
        ordinal: 0,
        cwd: ".".into(),
        environment: BTreeMap::new(),
    };
    let task_id = TaskId::from_random([1; 5]);
    EffectEntry {
        format: EFFECT_FORMAT,
        key: call.key(&task_id),
        task_id,
        call_hash: call.hash(),
        call,
        class,
        gate: EffectGate::Free,
        time_limit: LIMIT,
        handling,
        dry_run_output: None,
        allowed_by: None,
        claims: 0,
        created_at: Timestamp::from_millis(0),
        status: EffectStatus::Proposed { since: Timestamp::from_millis(0) },
    }
}

/// Something that happens to an entry.
#[derive(Debug, Clone)]
enum Happening {
    /// A run of an attempt asks to start it, and starts where it may.
    Claim { epoch: u64, run: u8 },
    /// A worker says what came of its attempt.
    Say { epoch: u64, what: u8 },
    /// A probe answers.
    Probe(ProbeAnswer),
    /// A person says so.
    Judge(bool),
    /// The worker is lost.
    Lose,
    /// Time passes.
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let answer = prop_oneof![Just(ProbeAnswer::Done), Just(ProbeAnswer::NotDone), Just(ProbeAnswer::Unclear)];
    prop_oneof![
        4 => (1..4u64, 0..2u8).prop_map(|(epoch, run)| Happening::Claim { epoch, run }),
        4 => (1..4u64, 0..4u8).prop_map(|(epoch, what)| Happening::Say { epoch, what }),
        2 => answer.prop_map(Happening::Probe),
        1 => any::<bool>().prop_map(Happening::Judge),
        2 => Just(Happening::Lose),
        2 => (1..60u64).prop_map(Happening::Wait),
    ]
}

fn worker() -> InstanceId {
    "worker-1".parse().unwrap()
}

fn settlement(entry: &EffectEntry, epoch: u64, outcome: Settled) -> Settlement {
    Settlement { task_id: entry.task_id.clone(), key: entry.key, epoch, worker: worker(), outcome }
}

fn outcome(what: u8) -> Settled {
    match what {
        0 => Settled::Done(EffectResult { exit_code: 0, output: None, from: None, tree: None }),
        1 => Settled::Failed { why: "exit code 1".into() },
        2 => Settled::NotStarted { why: "no such program".into() },
        _ => Settled::Unknown { why: "timed out".into() },
    }
}

/// Carries it out; says whether it is started by it.
fn happen(entry: &mut EffectEntry, happening: &Happening, at: Timestamp) -> bool {
    match happening {
        Happening::Claim { epoch, run } => {
            let request = ClaimRequest {
                task_id: entry.task_id.clone(),
                epoch: *epoch,
                worker: worker(),
                run: Digest::of([*run]),
                call: entry.call.clone(),
                time_limit: LIMIT,
            };
            let found = look(entry, &request, at);
            let may = matches!(found, Found::Startable | Found::OwnClaim | Found::Unknown(Remedy::Key));
            if may {
                start(entry, &request, at, None);
            }
            return may && found != Found::OwnClaim;
        }
        Happening::Say { epoch, what } => {
            settle(entry, &settlement(entry, *epoch, outcome(*what)), at);
        }
        Happening::Probe(answer) => {
            settle(entry, &settlement(entry, 9, Settled::Probed(*answer)), at);
        }
        Happening::Judge(done) => {
            let _ = judge(entry, ("ada", *done, "I looked"), at);
        }
        Happening::Lose => lose(entry, at, "lost"),
        Happening::Wait(_) => {}
    }
    false
}

fn handlings() -> impl Strategy<Value = Handling> {
    (any::<bool>(), any::<bool>()).prop_map(|(idempotent, probe)| Handling {
        idempotent,
        probe: probe.then(|| vec!["./probe".to_owned()]),
        ..Handling::default()
    })
}

fn classes() -> impl Strategy<Value = EffectClass> {
    prop_oneof![Just(EffectClass::Effectful), Just(EffectClass::Irreversible)]
}

proptest! {
    #[test]
    fn done_never_goes_back(
        class in classes(), handling in handlings(), happenings in prop::collection::vec(happening(), 1..40)
    ) {
        let (mut entry, mut at, mut done) = (entry(class, handling), Timestamp::from_millis(0), false);
        for happening in &happenings {
            if let Happening::Wait(seconds) = happening {
                at = at.plus(Duration::from_secs(*seconds));
            }
            let started = happen(&mut entry, happening, at);
            prop_assert!(!(done && started), "{happening:?} started it again");
            prop_assert!(entry.status.is_done() || !done, "{happening:?} took it back");
            done = entry.status.is_done();
        }
    }

    #[test]
    fn nothing_leads_from_unknown_to_a_start_but_a_key_a_probe_or_a_person(
        class in classes(), handling in handlings(), happenings in prop::collection::vec(happening(), 1..40)
    ) {
        let (mut entry, mut at) = (entry(class, handling.clone()), Timestamp::from_millis(0));
        // Whether it was started and nothing that counts has said since that it did not happen.
        let (mut under_way, mut started_at) = (false, at);
        for happening in &happenings {
            if let Happening::Wait(seconds) = happening {
                at = at.plus(Duration::from_secs(*seconds));
            }
            let before = entry.status.clone();
            if happen(&mut entry, happening, at) {
                prop_assert!(!under_way || handling.idempotent, "{happening:?} started it on a guess after {before:?}");
                (under_way, started_at) = (true, at);
            }
            if matches!((&before, &entry.status), (b, EffectStatus::Failed { .. }) if b.name() != "failed") {
                let may = match happening {
                    Happening::Probe(ProbeAnswer::NotDone) => at.since(started_at) >= Duration::from_secs(40),
                    Happening::Say { what: 1, .. } => class != EffectClass::Irreversible,
                    Happening::Say { what: 2, .. } => true,
                    _ => false,
                };
                prop_assert!(may, "{happening:?} after {before:?}");
                under_way = false;
            }
            if matches!(&entry.status, EffectStatus::Settled { done: false, .. }) {
                under_way = false;
            }
        }
    }

    #[test]
    fn settling_twice_is_settling_once(
        class in classes(), handling in handlings(), happenings in prop::collection::vec(happening(), 1..30)
    ) {
        let (mut entry, mut at) = (entry(class, handling), Timestamp::from_millis(0));
        for happening in &happenings {
            if let Happening::Wait(seconds) = happening {
                at = at.plus(Duration::from_secs(*seconds));
            }
            happen(&mut entry, happening, at);
            if !matches!(happening, Happening::Claim { .. }) {
                let once = entry.clone();
                // What was too early may count a second later; everything else would show another time.
                let early = matches!(happening, Happening::Probe(ProbeAnswer::NotDone));
                happen(&mut entry, happening, if early { at } else { at.plus(Duration::from_secs(1)) });
                prop_assert_eq!(&once, &entry, "{:?}", happening);
            }
        }
    }
}
