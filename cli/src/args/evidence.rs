//! Arguments of `checkpoint` and `evidence`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands about the chain of checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Lists the chain of a task, oldest first.
    #[command(after_help = "Examples:\n  checkrein checkpoint list last")]
    List {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
    },
    /// Shows one checkpoint: state, claims with what they rest on, hashes.
    #[command(after_help = "\
Examples:
  checkrein checkpoint show last
  checkrein checkpoint show last 2 --json")]
    Show {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// `cp-..`, its number, or `head`.
        #[arg(default_value = "head")]
        checkpoint: String,
    },
    /// Computes every hash again and checks that each checkpoint follows the one before.
    #[command(after_help = "Examples:\n  checkrein checkpoint verify last")]
    Verify {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
    },
    /// Prints what a checkpoint changes: against the target, or against an earlier checkpoint.
    #[command(after_help = "\
Examples:
  checkrein checkpoint diff last                    what would reach the target
  checkrein checkpoint diff last head --since 2     what came since checkpoint 2")]
    Diff {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// `cp-..`, its number, or `head`.
        #[arg(default_value = "head")]
        checkpoint: String,
        /// An earlier checkpoint to compare with.
        #[arg(long, value_name = "CHECKPOINT")]
        since: Option<String>,
    },
    /// Writes the files of a checkpoint to a folder; the target is not touched.
    #[command(after_help = "Examples:\n  checkrein checkpoint restore last 2 --to ../look")]
    Restore {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// `cp-..`, its number, or `head`.
        #[arg(default_value = "head")]
        checkpoint: String,
        /// The folder; new or empty.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// Commands about evidence.
#[derive(Debug, Subcommand)]
pub(crate) enum EvidenceCommand {
    /// Lists the artifacts of a task: what each is, who made it, and how large it is.
    #[command(after_help = "Examples:\n  checkrein evidence list last")]
    List {
        /// An id, the beginning of one, a name, or `last`.
        #[arg(default_value = "last")]
        task: String,
    },
    /// Prints one artifact, its digest checked.
    #[command(after_help = "\
Examples:
  checkrein evidence get last diff:cs-7k3m9qfx-0002
  checkrein evidence get last log:unit-1 > unit.log")]
    Get {
        /// An id, the beginning of one, a name, or `last`.
        task: String,
        /// A ref from `evidence list`, or a digest.
        reference: String,
    },
}
