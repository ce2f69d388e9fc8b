//! What a step of a task file says about its effect, checked: a key that could
//! do nothing is an error, so that nobody relies on it.

use super::error::Problems;
use super::shapes::{self, Argv};
use super::steps::add;
use crate::policy::yaml::Place;
use crate::records::{EffectClass, Handling, StepAction};
use crate::time::Span;

/// The longest time that a step may ask for.
const TIMEOUT_MAX: Span = Span::from_secs(7 * 24 * 3_600);

/// Takes the keys about effects out of a step. `at` gives the place of one of its keys.
pub(super) fn of(
    step: &mut shapes::Step,
    action: Option<&StepAction>,
    at: impl Fn(&str) -> Place,
    problems: &mut Problems<'_>,
) -> Option<Handling> {
    let written = [
        ("timeout", step.timeout.is_some()),
        ("idempotent", step.idempotent),
        ("probe", step.probe.is_some()),
        ("dry_run", step.dry_run.is_some()),
        ("compensate", step.compensate.is_some()),
    ];
    let is_prompt = matches!(action, Some(StepAction::Prompt(_)));
    for (key, _) in written.into_iter().filter(|(_, written)| *written) {
        let message = match key {
            _ if is_prompt => format!("`{key}` is for steps that `run` a command"),
            "timeout" => continue,
            _ if step.effect == EffectClass::ReadOnly => {
                format!("`{key}` says how an effect is handled, but step `{}` has none", step.id)
            }
            _ => continue,
        };
        let hint = if is_prompt {
            "leave it out, or do what has the effect in a `run` step of its own"
        } else {
            "add `effect: effectful` or `effect: irreversible`, or leave it out"
        };
        return add(problems, at(key), &message, hint);
    }
    if step.timeout.is_some_and(|time| time == Span::from_millis(0) || time > TIMEOUT_MAX) {
        return add(problems, at("timeout"), "`timeout` is zero or longer than 7 days", "write `timeout: 10m`");
    }
    let mut command = |key: &str, argv: Option<Argv>| match argv {
        None => Some(None),
        Some(argv) => match argv.problem() {
            None => Some(Some(argv.0)),
            Some(message) => {
                let hint = format!("write `{key}: [./{key}.sh]` or a line for the shell");
                add(problems, at(key), message, &hint)
            }
        },
    };
    Some(Handling {
        timeout: step.timeout,
        idempotent: step.idempotent,
        probe: command("probe", step.probe.take())?,
        dry_run: command("dry_run", step.dry_run.take())?,
        compensate: command("compensate", step.compensate.take())?,
    })
}
