//! Arguments of the commands that only look.

use clap::Args;

/// A task, as people name it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples of TASK:
  last                            the newest task
  t-7k3                           the task whose id begins so
  'fix the sum'                   the task with that name")]
pub(crate) struct TaskArg {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein show last
  checkrein show t-7k3 --why      each decision with rule, line, policy and the values it saw;
                                  each stale verdict with the field that changed; each claim with
                                  what it rests on")]
pub(crate) struct ShowArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// Also says why it came to this.
    #[arg(long)]
    pub(crate) why: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein watch last
  checkrein watch last --from-start --json")]
pub(crate) struct WatchArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// Shows what happened so far as well.
    #[arg(long)]
    pub(crate) from_start: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein schema                lists the records
  checkrein schema checkpoint > checkpoint.schema.json")]
pub(crate) struct SchemaArgs {
    /// The record; all names are listed where it is left out.
    pub(crate) name: Option<String>,
}
