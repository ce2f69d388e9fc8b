//! The command line: what can be typed, and the help that teaches it.
//!
//! Shapes only. What a command does stands in [`crate::commands`].

mod effects;
mod evidence;
mod help;
mod keep;
mod look;
mod people;
mod setup;
mod store;
mod work;

use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use effects::EffectsCommand;
pub(crate) use evidence::{CheckpointCommand, EvidenceCommand};
pub(crate) use keep::GcArgs;
pub(crate) use look::{SchemaArgs, ShowArgs, TaskArg, WatchArgs};
pub(crate) use people::{
    AmendArgs, ApproveArgs, CloseFindingArgs, HandbackArgs, RejectArgs, RequestChangesArgs, TakeoverArgs,
};
pub(crate) use setup::{CompletionsArgs, DemoArgs, DemoName, InitArgs, ProjectKind};
pub(crate) use store::{BackupArgs, RebuildArgs, StoreCommand};
pub(crate) use work::{PolicyCommand, RunArgs, SubmitArgs, TaskOptions};

use crate::output::ColorWhen;

/// Lets AI agents work for a long time, and lets nothing through that has not been reviewed from evidence.
#[derive(Debug, Parser)]
#[command(name = "checkrein", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The data folder [default: $XDG_STATE_HOME/checkrein or ~/.local/state/checkrein].
    #[arg(long, global = true, value_name = "DIR", env = "CHECKREIN_DATA", hide_env_values = true)]
    pub(crate) data: Option<PathBuf>,
    /// Prints JSON for programs: one value, or one a line where it goes on.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints only results.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Logs more to standard error; twice for everything.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub(crate) color: ColorWhen,
    /// The name under which decisions are recorded [default: your user name].
    #[arg(long, global = true, value_name = "NAME", env = "CHECKREIN_USER", hide_env_values = true)]
    pub(crate) by: Option<String>,
}

/// The commands; the help shows them in groups.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an example in a new folder, to see the whole thing once.
    Demo(DemoArgs),
    /// Writes a task file and a policy for the project in this folder.
    Init(InitArgs),
    /// Checks what this machine offers and says what is missing.
    Doctor,
    /// Runs one task until it is done or needs somebody.
    Run(RunArgs),
    /// Serves all tasks until it is stopped.
    Up,
    /// Hands a task over to be run by `up`.
    Submit(SubmitArgs),
    /// Lists the tasks.
    Tasks,
    /// Shows one task: state, steps, reviews, findings.
    Show(ShowArgs),
    /// Follows a task as it goes on.
    Watch(WatchArgs),
    /// The chain of checkpoints: list, show, verify, diff, restore.
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// What claims and verdicts rest on: list, get.
    #[command(subcommand)]
    Evidence(EvidenceCommand),
    /// What tasks did outside their scratch: list, show, settle.
    #[command(subcommand)]
    Effects(EffectsCommand),
    /// Lists what waits for a person.
    Inbox,
    /// Says that you look after a question, so that others need not.
    Claim(TaskArg),
    /// Approves exactly the change that is asked about.
    Approve(ApproveArgs),
    /// Rejects the change that is asked about.
    Reject(RejectArgs),
    /// Sends a change back with something to do.
    RequestChanges(RequestChangesArgs),
    /// Closes a finding with a reason.
    CloseFinding(CloseFindingArgs),
    /// Takes a task over: its files are laid out for you to edit.
    Takeover(TakeoverArgs),
    /// Hands a task back that you took over.
    Handback(HandbackArgs),
    /// Changes objective, specification, plan or constraints.
    Amend(AmendArgs),
    /// Parks a task at its next checkpoint.
    Pause(TaskArg),
    /// Lets a paused or blocked task go on.
    Resume(TaskArg),
    /// Ends a task; what is applied stays applied.
    Cancel(TaskArg),
    /// Removes what nothing needs any more.
    Gc(GcArgs),
    /// Looks after the data folder: verify, rebuild, stats, backup.
    #[command(subcommand)]
    Store(StoreCommand),
    /// Checks and shows policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Prints the JSON Schema of a record.
    Schema(SchemaArgs),
    /// Prints completions for a shell.
    Completions(CompletionsArgs),
}

/// The command with its help in groups.
pub(crate) fn command() -> clap::Command {
    help::grouped(Cli::command())
}

/// Reads the command line.
pub(crate) fn parse(args: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
