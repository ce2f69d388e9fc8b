//! Short ways to write steps and tasks.

use checkrein_shared::ids::StepId;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{
    AgentSpec, Budgets, EffectClass, HomeDir, Plan, Risk, Step, StepAction, TaskSpec, WorkspaceSpec,
};

fn step(id: &str, needs: &[&str], action: StepAction) -> Step {
    Step {
        id: id.parse().unwrap(),
        action,
        needs: needs.iter().map(|n| n.parse::<StepId>().unwrap()).collect(),
        verify: Vec::new(),
        risk: Risk::R1,
        effect: EffectClass::ReadOnly,
        handling: Default::default(),
    }
}

pub(crate) fn prompt(id: &str, needs: &[&str], text: &str) -> Step {
    step(id, needs, StepAction::Prompt(text.into()))
}

pub(crate) fn run(id: &str, needs: &[&str], argv: &[&str]) -> Step {
    step(id, needs, StepAction::Run(argv.iter().map(ToString::to_string).collect()))
}

pub(crate) fn sh(id: &str, needs: &[&str], script: &str) -> Step {
    run(id, needs, &["sh", "-c", script])
}

/// A task in a directory, with an agent where there is a command.
pub(crate) fn task_of(project: &str, agent: Option<&[&str]>, env: &[&str], steps: Vec<Step>) -> TaskSpec {
    TaskSpec {
        format: 1,
        name: "a-task".into(),
        objective: "Make it right.".into(),
        spec: None,
        constraints: Vec::new(),
        workspace: WorkspaceSpec::Directory(project.into()),
        labels: Default::default(),
        agent: agent.map(|command| AgentSpec {
            command: command.iter().map(ToString::to_string).collect(),
            env: env.iter().map(ToString::to_string).collect(),
            home: HomeDir::Private,
        }),
        plan: Plan { version: 1, steps },
        budgets: Budgets::default(),
    }
}

pub(crate) fn task_id(number: u8) -> TaskId {
    TaskId::from_random([number; 5])
}
