//! Events about effects as people read them.

use checkrein_shared::api::Tone;
use checkrein_shared::coordinator::{ClaimRequest, ProbeAnswer, Settled, Settlement};

use super::Line;
use crate::lifecycle::{CallGate, OpenEffect, Standing, Task};

/// A worker asked to start an effect; what it was told shows in the task.
pub(super) fn claimed(request: &ClaimRequest, task: &Task) -> Line {
    let step = &request.call.step;
    let key = request.call.key(&task.id);
    let open = task.effects.iter().find(|open| open.key == key);
    let short = key.short();
    match open {
        None => Line::new(Tone::Good, format!("the effect of step `{step}` is done already ({short})")),
        Some(OpenEffect { gate: Some(CallGate::Closed { person }), .. }) => {
            let who = if *person { "a person has" } else { "reviews have" };
            Line::new(Tone::Info, format!("step `{step}` wants to act outside; {who} to agree first ({short})"))
        }
        Some(OpenEffect { standing: Standing::Claimed { .. }, .. }) => {
            Line::new(Tone::Info, format!("the effect of step `{step}` is claimed and may start ({short})"))
        }
        Some(_) => Line::new(Tone::Bad, format!("nobody knows whether the effect of step `{step}` happened ({short})")),
    }
}

/// A worker said what came of an effect.
pub(super) fn settled(settlement: &Settlement) -> Line {
    let short = settlement.key.short();
    match &settlement.outcome {
        // The worker says it twice: at once, and when what the command left is stored.
        Settled::Done(result) if result.tree.is_some() => {
            Line::new(Tone::Info, format!("what effect {short} left is kept"))
        }
        Settled::Done(_) => Line::new(Tone::Good, format!("effect {short} is done")),
        Settled::Failed { why } => Line::new(Tone::Bad, format!("effect {short} failed: {why}")),
        Settled::NotStarted { why } => Line::new(Tone::Info, format!("effect {short} never started: {why}")),
        Settled::Unknown { why } => {
            Line::new(Tone::Bad, format!("nobody knows whether effect {short} happened: {why}"))
        }
        Settled::Probed(ProbeAnswer::Done) => {
            Line::new(Tone::Good, format!("the probe says that effect {short} happened"))
        }
        Settled::Probed(ProbeAnswer::NotDone) => {
            Line::new(Tone::Info, format!("the probe says that effect {short} did not happen"))
        }
        Settled::Probed(ProbeAnswer::Unclear) => {
            Line::new(Tone::Bad, format!("the probe can't tell whether effect {short} happened"))
        }
    }
}
