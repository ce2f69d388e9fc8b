//! Makes a task to submit from what is typed: a task file, or an objective.

use std::path::{Path, PathBuf};

use checkrein_shared::api::Submission;
use checkrein_shared::policy::{self, AgentKind, ResolvedPolicy};
use checkrein_shared::records::{Budgets, StepAction, TaskSpec, WorkspaceSpec};
use checkrein_shared::task_file::{self, PolicyChoice, policy_choice};

use crate::agents;
use crate::args::TaskOptions;
use crate::context::Context;
use crate::failure::Failure;

/// The policy of a task that names none.
const DEFAULT_POLICY: &str = "default";

/// A task, ready to submit.
pub(crate) struct Prepared {
    pub(crate) submission: Submission,
    /// What the policy says and hardly means.
    pub(crate) warnings: Vec<String>,
}

/// Reads the task file, or makes a task of the objective. Nothing is started or written.
pub(crate) fn prepare(context: &Context, what: &str, options: &TaskOptions) -> Result<Prepared, Failure> {
    let task =
        if is_task_file(what) { from_file(context, what, options)? } else { from_objective(context, what, options)? };
    let here = Path::new("");
    let choice = match &options.policy {
        Some(text) => policy_choice(text, here),
        None => task.policy.unwrap_or_else(|| PolicyChoice::Named(DEFAULT_POLICY.to_owned())),
    };
    let (name, resolved) = load_policy(&choice)?;
    check_verifiers(&task.spec, &resolved)?;
    let warnings = warnings(&resolved, &task.spec)?;
    let policy = serde_json::to_value(&resolved).map_err(|e| Failure::caused("the policy has no JSON form", &e))?;
    let origin = task.origin.map(|path| path.display().to_string());
    let submission = Submission { spec: task.spec, policy, policy_name: name, origin, by: context.by.clone() };
    Ok(Prepared { submission, warnings })
}

struct Task {
    spec: TaskSpec,
    policy: Option<PolicyChoice>,
    origin: Option<PathBuf>,
}

/// Whether what was typed names a task file rather than an objective.
fn is_task_file(what: &str) -> bool {
    what.ends_with(".yaml")
        || what.ends_with(".yml")
        || (!what.contains(char::is_whitespace) && Path::new(what).is_file())
}

fn from_file(context: &Context, what: &str, options: &TaskOptions) -> Result<Task, Failure> {
    if options.agent.is_some() {
        return Err(Failure::usage("--agent goes with an objective; a task file names its agent itself")
            .hint("change `agent:` in the file"));
    }
    let file = task_file::load(Path::new(what), options.workspace.as_deref(), &context.surroundings())?;
    Ok(Task { spec: file.spec, policy: file.policy, origin: Some(file.origin) })
}

fn from_objective(context: &Context, objective: &str, options: &TaskOptions) -> Result<Task, Failure> {
    const NAME_CHARS_MAX: usize = 60;
    let objective = objective.trim();
    if objective.is_empty() {
        return Err(Failure::usage("there is nothing to do: the objective is empty").hint("say what is to be achieved"));
    }
    let Some(agent) = &options.agent else {
        let what = format!("`{objective}` is no task file, and as an objective it needs an agent");
        return Err(Failure::usage(what).hint("add --agent claude, or name a file that ends in .yaml"));
    };
    let folder = options.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let workspace = task_file::check_workspace(&folder, &context.surroundings())
        .map_err(|error| Failure::usage(error.message).at(folder.display()).hint(error.hint))?;
    let agent =
        agents::resolve(agent, Some(&workspace), |name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))?;
    let line = objective.lines().next().unwrap_or(objective);
    let name: String = line.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    let spec = TaskSpec {
        format: 1,
        name,
        objective: objective.to_owned(),
        spec: None,
        constraints: Vec::new(),
        workspace: WorkspaceSpec::Directory(workspace.display().to_string()),
        labels: Default::default(),
        agent: Some(agent),
        plan: task_file::one_step(objective),
        budgets: Budgets::default(),
    };
    Ok(Task { spec, policy: project_policy(&workspace), origin: None })
}

/// The policy that `init` wrote for this project, if there is one.
fn project_policy(workspace: &Path) -> Option<PolicyChoice> {
    let file = workspace.join(crate::init::POLICY_FILE);
    file.is_file().then_some(PolicyChoice::File(file))
}

/// Loads a policy and says what it is called.
pub(crate) fn load_policy(choice: &PolicyChoice) -> Result<(String, ResolvedPolicy), Failure> {
    Ok(match choice {
        PolicyChoice::Named(name) => (name.clone(), policy::load_named(name)?),
        PolicyChoice::File(path) => (path.display().to_string(), policy::load_file(path)?),
    })
}

fn check_verifiers(spec: &TaskSpec, policy: &ResolvedPolicy) -> Result<(), Failure> {
    for step in &spec.plan.steps {
        if let Some(missing) = step.verify.iter().find(|name| !policy.verifiers.contains_key(*name)) {
            let known: Vec<&str> = policy.verifiers.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what = format!(
                "step `{}` wants the verifier `{missing}`, which the policy `{}` does not have",
                step.id, policy.name
            );
            return Err(Failure::usage(what).hint(format!("add it to the policy's `verifiers:`; it has: {known}")));
        }
    }
    Ok(())
}

fn warnings(policy: &ResolvedPolicy, spec: &TaskSpec) -> Result<Vec<String>, Failure> {
    let prompts = spec.plan.steps.iter().any(|step| matches!(step.action, StepAction::Prompt(_)));
    let kind = if prompts { AgentKind::Command } else { AgentKind::Any };
    let found = policy::lint(&policy.compile()?, kind);
    // What the built-in policies say in general is no news to somebody who wrote a file of their own.
    let own = |file: &str| policy::built_in(file.trim_end_matches(".yaml")).is_none();
    let mut warnings: Vec<String> =
        found.iter().filter(|warning| own(&warning.origin.file)).map(ToString::to_string).collect();
    if policy.verifiers.is_empty() {
        warnings.push("the policy has no verifiers: nothing is tested before a change is applied".to_owned());
    }
    Ok(warnings)
}
