//! Arguments of the commands that keep the data folder in order.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein gc --dry-run          what would go, what stays, and why
  checkrein gc                    the same, done; `checkrein up` does it once a day by itself

Tasks that ended longer ago than `retention: {done: ..}` of their policy lose their evidence, files and history;
`show` then says how they ended. Blobs that no record refers to go once they are a day old. If anything that a
record refers to is missing or damaged, nothing is removed, and the exit code is 7.")]
pub(crate) struct GcArgs {
    /// Only says what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
