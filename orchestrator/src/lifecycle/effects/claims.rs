//! Claims: a worker asks to start an effect, and what it is told.
//!
//! Fenced: only the worker that holds the running attempt may claim, and only
//! what the plan says. The claim is in the journal before the worker hears of it.

use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::policy::ToolMode;
use checkrein_shared::records::{
    CALL_BYTES_MAX, EFFECT_FORMAT, EffectClass, EffectEntry, EffectGate, EffectStatus, Handling, JobKind, Remedy, Step,
    StepAction,
};
use checkrein_shared::time::{Span, Timestamp};

use crate::guards::guard;

use super::super::decision::Reason;
use super::super::task::{State, Task};
use super::super::turn::{Handled, Turn};
use super::ledger::{self, Found};
use super::{OPEN_MAX, OpenEffect, Standing};

impl Turn<'_> {
    /// Lets a worker start an effect, or finds out why it may not.
    pub(in super::super) fn effect_claimed(&mut self, request: &ClaimRequest) -> Handled {
        if let Some(why) = self.may_not_claim(request) {
            return self.illegal(why);
        }
        let (key, hash) = (request.call.key(&self.task.id), request.call.hash());
        let Some(step) = self.task.plan.step(&request.call.step).cloned() else {
            return self.illegal("the plan has no such step; start nothing");
        };
        let terms = self.terms(&step, request);
        if terms.mode == ToolMode::Deny {
            let (tool, origin) = (&request.call.tool, terms.origin.as_deref().unwrap_or("the policy"));
            return self.illegal(format!("the policy denies `{tool}` ({origin}); start nothing"));
        }
        if terms.class == EffectClass::ReadOnly && terms.mode == ToolMode::Allow {
            return Ok(Some(Reason::NoEffect));
        }
        if !matches!(&self.task.state, State::Running { job: JobKind::Step { .. }, .. }) {
            return self.illegal("evidence is gathered without acting outside; start nothing");
        }
        if request.call.is_agent_run() && self.is_unknown_elsewhere(&step, key) {
            return self.illegal("nobody knows what came of an earlier run of this step's agent; start nothing");
        }
        self.forget_superseded(&step, key);
        let before = self.entry(&key).cloned();
        let mut entry = before.clone().unwrap_or_else(|| new_entry(key, request, self.task.id.clone(), self.at));
        entry.call = request.call.clone();
        entry.call_hash = hash;
        (entry.class, entry.gate, entry.time_limit) = (terms.class, terms.gate(), terms.time_limit);
        if let EffectStatus::Unknown { probe_failed, .. } = &mut entry.status {
            // Another probe has not been asked yet.
            *probe_failed &= entry.handling.probe == terms.handling.probe;
        }
        entry.handling = terms.handling;
        let known = self.task.effects.iter().position(|open| open.key == key);
        let was = known.map(|at| self.task.effects[at].clone());
        let open = match known {
            Some(at) => OpenEffect { superseded: false, ..self.task.effects.remove(at) },
            None if self.task.effects.len() >= OPEN_MAX => {
                return self.illegal(format!("{OPEN_MAX} effects of this task are open already; settle those first"));
            }
            None => OpenEffect {
                key,
                step: step.id,
                call: hash,
                class: terms.class,
                standing: Standing::NotStarted {},
                shown: None,
                gate: None,
                superseded: false,
            },
        };
        self.claim(request, (entry, before), (open, was))
    }

    /// Decides about a call that may be made as far as fences and policy go.
    fn claim(
        &mut self,
        request: &ClaimRequest,
        (mut entry, before): (EffectEntry, Option<EffectEntry>),
        (mut open, was): (OpenEffect, Option<OpenEffect>),
    ) -> Handled {
        open.class = entry.class;
        let ignored = match ledger::look(&mut entry, request, self.at) {
            Found::Done if !guard!(DoneEffectIsNotRepeated, entry.class == EffectClass::ReadOnly) => {
                // Nothing is open any more.
                return Ok(self.put_if_changed(entry, before.as_ref()).then_some(Reason::EffectDone));
            }
            Found::OwnClaim => {
                let allowed = entry.allowed_by.clone();
                ledger::start(&mut entry, request, self.at, allowed);
                None
            }
            Found::Unknown(remedy) if !guard!(UnknownEffectWaits, remedy == Remedy::Key) => {
                open.standing = Standing::Unknown { remedy };
                Some(Reason::EffectUnknown)
            }
            found => match self.pass_gate(&mut open, &entry) {
                Ok(allowed) => {
                    ledger::start(&mut entry, request, self.at, allowed);
                    open.standing = Standing::Claimed { epoch: request.epoch };
                    None
                }
                Err(_) => {
                    if found != Found::Startable {
                        open.standing = Standing::Unknown { remedy: Remedy::Key };
                    }
                    None
                }
            },
        };
        let same = was.as_ref() == Some(&open);
        self.task.effects.push(open);
        let unchanged = self.put_if_changed(entry, before.as_ref());
        Ok(ignored.filter(|_| unchanged && same))
    }

    /// Writes an entry where it is another one than before; says whether it is the same.
    fn put_if_changed(&mut self, entry: EffectEntry, before: Option<&EffectEntry>) -> bool {
        let same = before == Some(&entry);
        if !same {
            self.put(entry);
        }
        same
    }

    /// Why this worker may start nothing of the kind, where that is so.
    fn may_not_claim(&self, request: &ClaimRequest) -> Option<String> {
        let call = &request.call;
        let holds = matches!(
            &self.task.state,
            State::Running { job: JobKind::Step { step, .. } | JobKind::Evidence { step }, worker, .. }
                if *step == call.step && *worker == request.worker
        );
        if !guard!(EffectOfThisAttempt, holds && request.epoch == self.task.epoch) {
            return Some("the attempt is over; start nothing".to_owned());
        }
        let action = self.task.plan.step(&call.step).map(|step| &step.action)?;
        let planned = match action {
            StepAction::Run(_) => call.is_action(action),
            StepAction::Prompt(_) if call.tool.starts_with("agent:") => call.is_agent_run() && call.ordinal == 0,
            StepAction::Prompt(_) => !call.tool.starts_with("step:"),
        };
        if !planned {
            return Some(format!("the plan's step `{}` is another one by now; start nothing", call.step));
        }
        let bytes = json::canonical(call).map_or(usize::MAX, |bytes| bytes.len());
        (bytes > CALL_BYTES_MAX).then(|| format!("a call may have at most {CALL_BYTES_MAX} bytes"))
    }

    /// Whether nobody knows what came of another effect of the step.
    fn is_unknown_elsewhere(&self, step: &Step, key: Digest) -> bool {
        let unknown = |open: &OpenEffect| matches!(open.standing, Standing::Unknown { .. });
        self.task.effects.iter().any(|open| open.step == step.id && open.key != key && unknown(open))
    }

    /// A step's command is one effect: where it is another one than before, nobody is asked about the older one any
    /// more. It stays open while its outcome is unknown, so that it is not forgotten.
    fn forget_superseded(&mut self, step: &Step, key: Digest) {
        let is_command = matches!(step.action, StepAction::Run(_));
        let plan = &self.task.plan;
        let older = |open: &OpenEffect| {
            open.key != key && ((is_command && open.step == step.id) || plan.step(&open.step).is_none())
        };
        self.task.effects.retain(|open| open.standing != Standing::NotStarted {} || !older(open));
        for open in self.task.effects.iter_mut().filter(|open| older(open)) {
            open.superseded = true;
        }
    }
}

fn new_entry(
    key: Digest,
    request: &ClaimRequest,
    task_id: checkrein_shared::ids::TaskId,
    at: Timestamp,
) -> EffectEntry {
    EffectEntry {
        format: EFFECT_FORMAT,
        key,
        task_id,
        call: request.call.clone(),
        call_hash: key,
        class: EffectClass::Effectful,
        gate: EffectGate::Free,
        time_limit: request.time_limit,
        handling: Handling::default(),
        dry_run_output: None,
        allowed_by: None,
        claims: 0,
        created_at: at,
        status: EffectStatus::Proposed { since: at },
    }
}

/// What a worker is told about its claim, from what is in the journal now.
pub(crate) fn answer(task: &Task, entry: &EffectEntry, request: &ClaimRequest, now: Timestamp) -> ClaimAnswer {
    let key = entry.key;
    let waits = task.effects.iter().any(|open| open.key == key && open.gate.is_some());
    match &entry.status {
        EffectStatus::Claimed { epoch, run, .. } if *epoch == request.epoch && *run == request.run => {
            ClaimAnswer::Granted { key, time_limit: entry.time_limit }
        }
        EffectStatus::Claimed { .. } => ClaimAnswer::Refused { reason: "another attempt has claimed it".to_owned() },
        EffectStatus::Done { result, .. } => {
            let how = "an earlier attempt did it".to_owned();
            ClaimAnswer::Done { key, result: result.clone(), how }
        }
        EffectStatus::Settled { done: true, by, reason, .. } => {
            ClaimAnswer::Done { key, result: None, how: format!("{by} says that it happened: {reason}") }
        }
        EffectStatus::Unknown { why, probe_after, .. } => match (entry.remedy(), &entry.handling.probe) {
            (Remedy::Key, _) if waits => gated(entry),
            (Remedy::Probe, Some(argv)) => {
                let left = u64::try_from(probe_after.since(now).as_millis()).unwrap_or(u64::MAX);
                ClaimAnswer::Probe { key, argv: argv.clone(), not_done_counts_in: Span::from_millis(left) }
            }
            _ => ClaimAnswer::Unknown { key, why: why.clone() },
        },
        EffectStatus::Proposed { .. } | EffectStatus::Failed { .. } | EffectStatus::Settled { done: false, .. } => {
            if waits {
                gated(entry)
            } else {
                ClaimAnswer::Refused { reason: "the claim was overtaken; ask again".to_owned() }
            }
        }
    }
}

fn gated(entry: &EffectEntry) -> ClaimAnswer {
    let whom = match entry.gate {
        EffectGate::Person => "a person has",
        EffectGate::Free | EffectGate::Review => "reviews have",
    };
    let why = format!("{whom} to agree to exactly this call first");
    ClaimAnswer::Gated { key: entry.key, dry_run: entry.handling.dry_run.clone(), why }
}
