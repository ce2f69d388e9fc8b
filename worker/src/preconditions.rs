//! What must hold before a step may start or go on, looked at before anything runs.
//!
//! What is not met here fails the attempt with a reason that a person can act
//! on. Drift is none of these: it is recorded, and the step goes on at its old
//! base (see [`crate::ground`]).

use std::path::{Path, PathBuf};

use checkrein_shared::ids::RootId;
use checkrein_shared::records::{
    AgentSpec, Conversation, Job, Precondition, Step, StepAction, TaskSpec, WorkspaceSpec,
};

use crate::environment::HostEnvironment;
use crate::policy::JobPolicy;
use crate::roots;

/// A condition that does not hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmet {
    /// The target is not there.
    #[error("the workspace `{}` can't be used: {reason}", .path.display())]
    Workspace {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        reason: std::io::Error,
    },
    /// The path leads to another directory than before.
    #[error("the workspace `{}` is {found}, but the task was submitted for {wanted}: was it moved?", .path.display())]
    OtherRoot {
        /// Where it is.
        path: PathBuf,
        /// What is there.
        found: RootId,
        /// What should be there.
        wanted: RootId,
    },
    /// A prompt has nobody to carry it out.
    #[error("step `{0}` has a prompt, but the task names no agent: add `agent.command` to the task")]
    NoAgent(String),
    /// The policy asks for an agent that the task does not have.
    #[error("the policy asks for agent `{0}`, but the task has only its own: change the rule's `with`")]
    OtherAgent(String),
    /// The policy wants the changes somewhere else than this build can put them.
    #[error(
        "the policy puts changes on a branch of their own, which is not possible yet: set `workspace.to: worktree`"
    )]
    Branch,
    /// Secrets are missing.
    #[error("the agent needs {}, which the worker's environment does not have: set it and start the worker again", .0.join(", "))]
    Secrets(Vec<String>),
}

impl Unmet {
    /// Which condition it is.
    pub(crate) fn condition(&self) -> Precondition {
        match self {
            Self::Workspace { .. } | Self::OtherRoot { .. } => Precondition::WorkspacePresent,
            Self::NoAgent(_) | Self::OtherAgent(_) | Self::Branch => Precondition::RuntimeCompatible,
            Self::Secrets(_) => Precondition::SecretsResolvable,
        }
    }
}

/// The target's directory, where it is the one that the task was submitted for.
pub(crate) fn target(spec: &TaskSpec, wanted: &RootId) -> Result<PathBuf, Unmet> {
    let WorkspaceSpec::Directory(path) = &spec.workspace;
    let path = Path::new(path);
    let failed = |reason| Unmet::Workspace { path: path.to_owned(), reason };
    let found = roots::root_id(path).map_err(failed)?;
    if found != *wanted {
        return Err(Unmet::OtherRoot { path: path.to_owned(), found, wanted: wanted.clone() });
    }
    path.canonicalize().map_err(failed)
}

/// Whether this build can carry a step out with the agent that the task has; returns the agent where it needs one.
pub(crate) fn runtime<'a>(
    spec: &'a TaskSpec,
    step: &Step,
    conversation: &Conversation,
    policy: &JobPolicy,
) -> Result<Option<&'a AgentSpec>, Unmet> {
    if policy.applies_to_branch() {
        return Err(Unmet::Branch);
    }
    if !matches!(step.action, StepAction::Prompt(_)) {
        return Ok(None);
    }
    let agent = spec.agent.as_ref().ok_or_else(|| Unmet::NoAgent(step.id.to_string()))?;
    match conversation {
        Conversation::Agent(name) => Err(Unmet::OtherAgent(name.clone())),
        Conversation::Same | Conversation::Fresh => Ok(Some(agent)),
    }
}

/// Whether a step can be carried out here. Returns the target's directory.
pub(crate) fn step(
    job: &Job,
    spec: &TaskSpec,
    step: &Step,
    conversation: &Conversation,
    (policy, host): (&JobPolicy, &HostEnvironment),
) -> Result<PathBuf, Unmet> {
    let agent = runtime(spec, step, conversation, policy)?;
    let target = target(spec, &job.root_id)?;
    if let Some(agent) = agent {
        let missing = host.missing(agent);
        if !missing.is_empty() {
            return Err(Unmet::Secrets(missing.into_iter().map(|name| format!("`{name}`")).collect()));
        }
    }
    Ok(target)
}
