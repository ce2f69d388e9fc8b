//! Arguments of the commands with which people begin.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein demo                  an agent that lies twice, and is caught twice
  checkrein demo drift            a colleague edits the project while a review runs
  checkrein demo takeover         the agent fails, a person takes over and hands back
  checkrein demo hello --kill     the same run, killed in the middle and resumed

The agents of the demos are shell scripts that play a part; no model is asked.")]
pub(crate) struct DemoArgs {
    /// Which example.
    #[arg(value_enum, default_value = "hello")]
    pub(crate) name: DemoName,
    /// Kills the run after its first checkpoint, resumes it, and checks that nothing was lost or done twice.
    #[arg(long)]
    pub(crate) kill: bool,
    /// The folder to make [default: a new one among the temporary folders].
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

/// The examples that come with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoName {
    /// Claims without work, a weakened test, and then a real fix.
    Hello,
    /// A verdict that turns stale because somebody else edits the project.
    Drift,
    /// A task that is taken over by a person and handed back.
    Takeover,
}

impl DemoName {
    /// The name of its folder.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Drift => "drift",
            Self::Takeover => "takeover",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein init                  looks for Cargo.toml, package.json, pyproject.toml, go.mod, Makefile
  checkrein init --kind npm       for a folder that holds several of them
  checkrein init --agent claude   with the agent that shall do the work

It writes checkrein.yaml (the task) and checkrein-policy.yaml (how it is reviewed).")]
pub(crate) struct InitArgs {
    /// The project's folder.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// What kind of project it is, where it can't be told.
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ProjectKind>,
    /// The agent that shall do the work: claude, codex, opencode, aider, or a command.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Overwrites files that are there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Kinds of projects whose tests `init` knows how to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProjectKind {
    /// Rust, with Cargo.
    Cargo,
    /// JavaScript or TypeScript, with npm.
    Npm,
    /// Python, with pytest.
    Pytest,
    /// Go modules.
    Go,
    /// Anything with a Makefile that has a `test` target.
    Make,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein completions bash > ~/.local/share/bash-completion/completions/checkrein
  checkrein completions fish > ~/.config/fish/completions/checkrein.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
