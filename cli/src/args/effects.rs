//! Arguments of `effects`.

use clap::{ArgGroup, Subcommand};

/// Commands about the effects ledger.
#[derive(Debug, Subcommand)]
pub(crate) enum EffectsCommand {
    /// Lists what tasks did outside their scratch, or began to do.
    #[command(after_help = "\
Examples:
  checkrein effects list              of all tasks
  checkrein effects list last --json  of one")]
    List {
        /// An id, the beginning of one, a name, or `last`; all tasks where it is left out.
        task: Option<String>,
    },
    /// Shows one effect: what ran, where it stands, and the command that undoes it.
    #[command(after_help = "\
Examples:
  checkrein effects show 1a2b3c4d

KEY is the key from `effects list`, or at least its first 8 characters.")]
    Show {
        /// The key, or its first 8 characters or more.
        key: String,
    },
    /// Says whether an effect happened whose outcome nobody knows; its task then goes on.
    #[command(group = ArgGroup::new("outcome").required(true), after_help = "\
Examples:
  checkrein effects settle 1a2b3c4d --done --reason 'release 1.4 is on the server'
  checkrein effects settle 1a2b3c4d --not-done --reason 'the server never saw it'

Find out first. After --done the step is completed without running its command; after --not-done
the command runs (again), through its gate where it has one.")]
    Settle {
        /// The key, or its first 8 characters or more.
        key: String,
        /// It happened.
        #[arg(long, group = "outcome")]
        done: bool,
        /// It did not happen.
        #[arg(long, group = "outcome")]
        not_done: bool,
        /// How you know.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}
