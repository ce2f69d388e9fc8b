//! Tools: what a call does, and how it is let through.

use crate::policy::compile::CompiledPolicy;
use crate::policy::expr::World;
use crate::policy::facts::{CallFacts, Facts};
use crate::policy::resolved::{Origin, Tool};
use crate::policy::words::ToolMode;
use crate::records::EffectClass;
use crate::time::Span;

/// How a call is treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDecision {
    /// What it does outside the scratch.
    pub effect: EffectClass,
    /// How it is let through.
    pub mode: ToolMode,
    /// The entries that decided, the most derived first; empty: no entry matches.
    pub origins: Vec<Origin>,
    /// How long it may take, where an entry says.
    pub timeout: Option<Span>,
    /// Tells whether an interrupted call took effect.
    pub probe: Option<Vec<String>>,
    /// Shows what it would do.
    pub dry_run: Option<Vec<String>>,
    /// Undoes it.
    pub compensate: Option<Vec<String>>,
    /// What failed, where a condition did; the call then needs a person at least.
    pub error: Option<String>,
}

/// How a call is treated: in every file of the policy the first entry that matches counts, and of these the highest
/// effect and the highest mode. A call that no entry matches is effectful and gated.
///
/// `facts.call.effect` is what the server's hints raise the call to; hints never lower anything. The conditions of a
/// file see there what the more derived files have raised it to.
pub fn tool_rule(policy: &CompiledPolicy, facts: &Facts) -> ToolDecision {
    let mut decision = ToolDecision {
        effect: EffectClass::ReadOnly,
        mode: ToolMode::Allow,
        origins: Vec::new(),
        timeout: None,
        probe: None,
        dry_run: None,
        compensate: None,
        error: None,
    };
    let Some(call) = &facts.call else {
        return refuse(decision, "there is no call to decide about".to_owned());
    };
    let Some(hinted) = effect(&call.effect) else {
        let message = format!("`{}` is no effect class", call.effect);
        return refuse(decision, message);
    };
    decision.effect = hinted;
    for (layer, compiled) in policy.policy().tools.iter().zip(&policy.tools) {
        let seen = CallFacts { effect: effect_word(decision.effect).to_owned(), ..call.clone() };
        let world = World::new(&Facts { call: Some(seen), ..facts.clone() });
        for (tool, entry) in layer.tools.iter().zip(compiled).filter(|(_, entry)| entry.matches.is_match(&call.name)) {
            let holds = entry.when.as_ref().map_or(Ok(true), |when| when.evaluate(&world, &mut Vec::new()));
            match holds {
                Ok(false) => continue,
                Ok(true) => {}
                Err(error) => {
                    decision = refuse(decision, format!("the condition at {} failed: {error}", tool.origin));
                }
            }
            add(&mut decision, tool);
            break;
        }
    }
    if decision.origins.is_empty() {
        decision.effect = decision.effect.max(EffectClass::Effectful);
        decision.mode = decision.mode.max(ToolMode::Gate);
    }
    decision
}

/// Whether any entry's pattern fits the tool's name, whatever its condition says.
pub fn lists_tool(policy: &CompiledPolicy, name: &str) -> bool {
    policy.tools.iter().flatten().any(|entry| entry.matches.is_match(name))
}

/// How the command of a step is treated. What its author says counts where no entry matches; an entry may raise it and
/// never lower it. A command that can't be undone waits for a review at least.
///
/// `facts.call` names the step as its tool, and holds the effect that its author says.
pub fn step_rule(policy: &CompiledPolicy, facts: &Facts) -> ToolDecision {
    let mut decision = tool_rule(policy, facts);
    if decision.origins.is_empty() && decision.error.is_none() {
        decision.effect =
            facts.call.as_ref().and_then(|call| effect(&call.effect)).unwrap_or(EffectClass::Irreversible);
        decision.mode = ToolMode::Allow;
    }
    if decision.effect == EffectClass::Irreversible {
        decision.mode = decision.mode.max(ToolMode::Gate);
    }
    decision
}

fn add(decision: &mut ToolDecision, tool: &Tool) {
    let argv = |command: &Option<crate::policy::Command>| command.as_ref().map(|command| command.argv().to_vec());
    decision.effect = decision.effect.max(tool.effect);
    decision.mode = decision.mode.max(tool.mode);
    decision.origins.push(tool.origin.clone());
    decision.timeout = decision.timeout.or(tool.timeout);
    decision.probe = decision.probe.take().or_else(|| argv(&tool.probe));
    decision.dry_run = decision.dry_run.take().or_else(|| argv(&tool.dry_run));
    decision.compensate = decision.compensate.take().or_else(|| argv(&tool.compensate));
}

fn refuse(decision: ToolDecision, error: String) -> ToolDecision {
    ToolDecision {
        effect: decision.effect.max(EffectClass::Effectful),
        mode: decision.mode.max(ToolMode::Human),
        error: Some(error),
        ..decision
    }
}

const EFFECTS: [(EffectClass, &str); 3] = [
    (EffectClass::ReadOnly, "read_only"),
    (EffectClass::Effectful, "effectful"),
    (EffectClass::Irreversible, "irreversible"),
];

fn effect(text: &str) -> Option<EffectClass> {
    EFFECTS.iter().find(|(_, name)| *name == text).map(|(effect, _)| *effect)
}

/// The class as policies write it.
pub fn effect_word(effect: EffectClass) -> &'static str {
    EFFECTS.iter().find(|(known, _)| *known == effect).map_or("effectful", |(_, name)| name)
}
