//! Arguments of the commands that start work, and of those about policies.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein run checkrein.yaml                      the task in a file
  checkrein run checkrein.yaml --new                once more from the start
  checkrein run \"fix the failing test\" --agent claude
  checkrein run \"sort the imports\" --agent './my-agent.sh' --workspace ../site
  checkrein run checkrein.yaml --json | jq -r 'select(.event) | .event.text'

A task file whose earlier task is not finished goes on where it was. One that is finished starts
anew, unless that would repeat what it did outside (steps with `effect:`). `--new` starts another
in any case.
An agent is any program: it finds the path of its instruction in CHECKREIN_INSTRUCTION, works in
a copy of the workspace, and may report in the file that CHECKREIN_RESULT names.
On a terminal you are asked in place when the policy wants a person; piped, the task is parked
with exit code 4 and the next commands are printed.")]
pub(crate) struct RunArgs {
    /// A task file (*.yaml), or an objective in plain words together with --agent.
    #[arg(value_name = "TASK.yaml|OBJECTIVE")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) task: TaskOptions,
    /// Starts a new task even where an earlier one of this file is not finished, or acted outside.
    #[arg(long)]
    pub(crate) new: bool,
    /// Only checks task and policy, and prints the task as it would be submitted.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein submit checkrein.yaml
  checkrein submit \"update the changelog\" --agent claude

Prints the task's id. With `checkrein up` running the work starts at once; else with the next one.")]
pub(crate) struct SubmitArgs {
    /// A task file (*.yaml), or an objective in plain words together with --agent.
    #[arg(value_name = "TASK.yaml|OBJECTIVE")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) task: TaskOptions,
}

/// What replaces or completes what a task file says.
#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    /// The folder to work on, instead of the file's [for an objective: this folder].
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The policy, instead of the file's: a name such as `default` or `strict`, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) policy: Option<String>,
    /// The agent for an objective: claude, codex, opencode, aider, or a command.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
}

/// Commands about policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Checks a policy file and says what is wrong, with line, column and advice.
    #[command(after_help = "\
Examples:
  checkrein policy check checkrein-policy.yaml
  checkrein policy check strict --json")]
    Check {
        /// A policy file, or the name of a policy that comes with the program.
        #[arg(value_name = "FILE|NAME", default_value = "checkrein-policy.yaml")]
        policy: String,
    },
    /// Runs the examples that a policy file has under `tests:`.
    #[command(after_help = "Examples:\n  checkrein policy test checkrein-policy.yaml")]
    Test {
        /// A policy file, or the name of a policy that comes with the program.
        #[arg(value_name = "FILE|NAME", default_value = "checkrein-policy.yaml")]
        policy: String,
    },
    /// Prints the resolved policy: what remains after `extends`.
    #[command(after_help = "\
Examples:
  checkrein policy show default
  checkrein policy show checkrein-policy.yaml | jq .verifiers")]
    Show {
        /// A policy file, or the name of a policy that comes with the program.
        #[arg(value_name = "FILE|NAME")]
        policy: String,
    },
}
