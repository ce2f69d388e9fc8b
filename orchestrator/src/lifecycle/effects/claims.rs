//! Claims: a worker asks to start an effect, and what it is told.
//!
//! Fenced: only the worker that holds the running attempt may claim, and only
//! what the plan says. The claim is in the journal before the worker hears of it.

use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::policy::{CallFacts, Facts, ToolDecision, ToolMode, effect_word, step_rule, tool_rule};
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

/// What plan and policy say about a call.
struct Terms {
    class: EffectClass,
    mode: ToolMode,
    time_limit: Span,
    handling: Handling,
    said: ToolDecision,
}

impl Terms {
    fn gate(&self) -> EffectGate {
        match self.mode {
            ToolMode::Allow => EffectGate::Free,
            ToolMode::Gate => EffectGate::Review,
            ToolMode::Human | ToolMode::Deny => EffectGate::Person,
        }
    }
}

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
            let origin = terms.said.origins.first().map_or_else(|| "the policy".to_owned(), ToString::to_string);
            return self.illegal(format!("the policy denies `{}` ({origin}); start nothing", request.call.tool));
        }
        if terms.class == EffectClass::ReadOnly && terms.mode == ToolMode::Allow {
            return Ok(Some(Reason::NoEffect));
        }
        if !matches!(&self.task.state, State::Running { job: JobKind::Step { .. }, .. }) {
            return self.illegal("evidence is gathered without acting outside; start nothing");
        }
        self.forget_superseded(&step, key);
        let before = self.entry(&key).cloned();
        let mut entry = before.clone().unwrap_or_else(|| new_entry(key, request, self.task.id.clone(), self.at));
        entry.call = request.call.clone();
        entry.call_hash = hash;
        (entry.class, entry.gate, entry.time_limit) = (terms.class, terms.gate(), terms.time_limit);
        entry.handling = terms.handling;
        let open = match self.task.effects.iter().position(|open| open.key == key) {
            Some(at) => self.task.effects.remove(at),
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
            },
        };
        self.claim(request, entry, open, before)
    }

    /// Decides about a call that may be made as far as fences and policy go.
    fn claim(
        &mut self,
        request: &ClaimRequest,
        mut entry: EffectEntry,
        mut open: OpenEffect,
        before: Option<EffectEntry>,
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
        self.task.effects.push(open);
        let unchanged = self.put_if_changed(entry, before.as_ref());
        Ok(ignored.filter(|_| unchanged))
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
            StepAction::Prompt(_) => !call.tool.starts_with("step:"),
        };
        if !planned {
            return Some(format!("the plan's step `{}` is another one by now; start nothing", call.step));
        }
        let bytes = json::canonical(call).map_or(usize::MAX, |bytes| bytes.len());
        (bytes > CALL_BYTES_MAX).then(|| format!("a call may have at most {CALL_BYTES_MAX} bytes"))
    }

    fn terms(&self, step: &Step, request: &ClaimRequest) -> Terms {
        let call = &request.call;
        let is_command = matches!(step.action, StepAction::Run(_));
        let declared = if is_command { step.effect } else { EffectClass::ReadOnly };
        let (server, _) = call.tool.split_once(':').unwrap_or((&call.tool, ""));
        let seen = CallFacts {
            name: call.tool.clone(),
            server: server.to_owned(),
            argv: call.argv().to_vec(),
            cwd: call.cwd.clone(),
            effect: effect_word(declared).to_owned(),
            prior: i64::from(call.ordinal),
            ..CallFacts::default()
        };
        let facts = Facts { call: Some(seen), ..self.facts(None) };
        let said =
            if is_command { step_rule(self.context.policy, &facts) } else { tool_rule(self.context.policy, &facts) };
        let own = if is_command { step.handling.clone() } else { Handling::default() };
        let limits = [own.timeout, said.timeout];
        let time_limit = limits.into_iter().flatten().min().map_or(request.time_limit, |t| t.min(request.time_limit));
        let handling = Handling {
            timeout: None,
            idempotent: own.idempotent,
            probe: said.probe.clone().or(own.probe),
            dry_run: said.dry_run.clone().or(own.dry_run),
            compensate: said.compensate.clone().or(own.compensate),
        };
        Terms { class: said.effect, mode: said.mode, time_limit, handling, said }
    }

    /// A step's command is one effect: where it is another one than before, the older one is no longer open. Its entry
    /// stays in the ledger.
    fn forget_superseded(&mut self, step: &Step, key: Digest) {
        let is_command = matches!(step.action, StepAction::Run(_));
        let task = &self.task;
        let gone: Vec<Digest> = task
            .effects
            .iter()
            .filter(|open| open.key != key)
            .filter(|open| (is_command && open.step == step.id) || task.plan.step(&open.step).is_none())
            .filter(|open| !matches!(open.standing, Standing::Claimed { .. }))
            .map(|open| open.key)
            .collect();
        self.task.effects.retain(|open| !gone.contains(&open.key));
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
