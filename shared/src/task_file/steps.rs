//! Makes the plan and the agent of a task from what its file says.

use std::path::Path;

use super::error::Problems;
use super::{handling, shapes};
use crate::ids::StepId;
use crate::policy::yaml::Place;
use crate::records::{AgentSpec, EffectClass, Handling, Plan, PlanError, Risk, Step, StepAction};

/// The name of the only step of a task without a plan.
pub const WORK_STEP: &str = "work";

/// The plan of a task that has none: its agent gets the objective.
pub fn one_step(objective: &str) -> Plan {
    let id = WORK_STEP.parse().expect("the name is a valid id");
    let action = StepAction::Prompt(objective.to_owned());
    let (needs, verify, handling) = (Vec::new(), Vec::new(), Handling::default());
    let step = Step { id, action, needs, verify, risk: Risk::R1, effect: EffectClass::ReadOnly, handling };
    Plan { version: 1, steps: vec![step] }
}

/// The plan. `at` gives the place of a step, or of one of its keys.
pub(super) fn plan(
    steps: Vec<shapes::Step>,
    has_agent: bool,
    at: impl Fn(usize, Option<&str>) -> Place,
    problems: &mut Problems<'_>,
) -> Option<Plan> {
    let mut found = Vec::with_capacity(steps.len());
    let mut whole = true;
    for (index, mut step) in steps.into_iter().enumerate() {
        let here = |key: &str| at(index, Some(key));
        let action = match (step.run.take(), step.prompt.take()) {
            (Some(command), None) => match command.problem() {
                None => Some(StepAction::Run(command.0)),
                Some(message) => add(problems, here("run"), message, "write `run: [make, test]` or `run: make test`"),
            },
            (None, Some(prompt)) if prompt.trim().is_empty() => {
                add(problems, here("prompt"), "the prompt is empty", "say what the agent shall do")
            }
            (None, Some(_)) if !has_agent => {
                let hint = "add `agent: {command: [..]}`, or use `run` instead of `prompt`";
                add(problems, here("prompt"), "a prompt needs an agent, and the task has none", hint)
            }
            (None, Some(prompt)) => Some(StepAction::Prompt(prompt)),
            _ => {
                let message = format!("step `{}` needs `run` or `prompt`, one of them", step.id);
                add(problems, at(index, None), &message, "a step does one thing: split it in two, joined by `needs`")
            }
        };
        let handling = handling::of(&mut step, action.as_ref(), here, problems);
        whole &= action.is_some() && handling.is_some();
        let shapes::Step { id, needs, verify, risk, effect, .. } = step;
        let made = action.zip(handling);
        found.extend(made.map(|(action, handling)| Step { id, action, needs, verify, risk, effect, handling }));
    }
    let plan = Plan { version: 1, steps: found };
    if !whole {
        return None;
    }
    match plan.check() {
        Ok(()) => Some(plan),
        Err(error) => {
            let index = guilty(&error).and_then(|id| plan.steps.iter().rposition(|s| &s.id == id)).unwrap_or(0);
            problems.add(at(index, None), error.to_string(), "`checkrein schema task-file` shows the form of a plan");
            None
        }
    }
}

fn guilty(error: &PlanError) -> Option<&StepId> {
    match error {
        PlanError::Duplicate(id) | PlanError::Cycle(id) | PlanError::Unknown { step: id, .. } => Some(id),
        PlanError::Empty | PlanError::TooLong(_) => None,
    }
}

/// The agent. A program whose name holds a `/` is relative to the folder of the task file, except within the workspace:
/// there the agent sees its own copy.
pub(super) fn agent(
    agent: shapes::Agent,
    folder: &Path,
    workspace: Option<&Path>,
    at: impl Fn(&str) -> Place,
    problems: &mut Problems<'_>,
) -> Option<AgentSpec> {
    if let Some(message) = agent.command.problem() {
        return add(problems, at("command"), message, "write `command: [my-agent, --headless]`");
    }
    let mut command = agent.command.0;
    let program = Path::new(&command[0]);
    if command[0].contains('/') && program.is_relative() {
        match folder.join(program).canonicalize() {
            Ok(found) if workspace.is_some_and(|workspace| found.starts_with(workspace)) => {
                // The scratch has the same file at the same place below the workspace.
                let below = workspace.and_then(|workspace| found.strip_prefix(workspace).ok());
                command[0] = below.map_or(command[0].clone(), |below| format!("./{}", below.display()));
            }
            Ok(found) => command[0] = found.display().to_string(),
            Err(error) => {
                let message = format!("the agent's program `{}` can't be found: {error}", command[0]);
                return add(problems, at("command"), &message, "its path is relative to the task file");
            }
        }
    }
    for name in &agent.env {
        let first = name.bytes().next();
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !plain || first.is_none_or(|b| b.is_ascii_digit()) {
            let message = format!("`{}` is not the name of an environment variable", name.escape_debug());
            return add(problems, at("env"), &message, "name variables only; their values are never stored");
        }
        if name.starts_with("CHECKREIN_") {
            let message = format!("`{name}` is set by Checkrein itself");
            return add(problems, at("env"), &message, "leave it out: the agent sees it anyway");
        }
    }
    Some(AgentSpec { command, env: agent.env, home: agent.home })
}

pub(super) fn add<T>(problems: &mut Problems<'_>, at: Place, message: &str, hint: &str) -> Option<T> {
    problems.add(at, message, hint);
    None
}
