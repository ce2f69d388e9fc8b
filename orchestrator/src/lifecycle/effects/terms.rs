//! What plan and policy say about a call before anybody asks the ledger.

use checkrein_shared::coordinator::ClaimRequest;
use checkrein_shared::policy::{CallFacts, Facts, ToolMode, effect_word, step_rule, tool_rule};
use checkrein_shared::records::{EffectClass, EffectGate, Handling, Step, StepAction};
use checkrein_shared::time::Span;

use super::super::turn::Turn;

/// What plan and policy say about a call.
pub(super) struct Terms {
    pub(super) class: EffectClass,
    pub(super) mode: ToolMode,
    pub(super) time_limit: Span,
    pub(super) handling: Handling,
    /// The entry of the policy that decided, where one did.
    pub(super) origin: Option<String>,
}

impl Terms {
    /// Who has to agree before the call starts.
    pub(super) fn gate(&self) -> EffectGate {
        match self.mode {
            ToolMode::Allow => EffectGate::Free,
            ToolMode::Gate => EffectGate::Review,
            ToolMode::Human | ToolMode::Deny => EffectGate::Person,
        }
    }
}

impl Turn<'_> {
    pub(super) fn terms(&self, step: &Step, request: &ClaimRequest) -> Terms {
        let call = &request.call;
        if call.is_agent_run() {
            // No policy sees into it, and nobody but a person can find out what it did.
            let (class, time_limit) = (step.effect, request.time_limit);
            return Terms { class, mode: ToolMode::Allow, time_limit, handling: Handling::default(), origin: None };
        }
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
        let origin = said.origins.first().map(ToString::to_string);
        Terms { class: said.effect, mode: said.mode, time_limit, handling, origin }
    }
}
