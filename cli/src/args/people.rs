//! Arguments of the commands with which people decide and steer.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein checkpoint diff last          look at the change first
  checkrein approve last
  checkrein approve last --hash sha256:4f0c9a1b77de --note 'read with Ana'

An approval holds for exactly the checkpoint that is asked about. With --hash nothing else can be
approved by mistake, whatever happened in the meantime.")]
pub(crate) struct ApproveArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// The hash of the checkpoint that you looked at, or its first 12 digits.
    #[arg(long, value_name = "SHA256")]
    pub(crate) hash: Option<String>,
    /// A note for the record.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein reject last --reason 'this is not the place to fix it'")]
pub(crate) struct RejectArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// The hash of the checkpoint that you looked at, or its first 12 digits.
    #[arg(long, value_name = "SHA256")]
    pub(crate) hash: Option<String>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein request-changes last --text 'keep the old flag working, with a warning'")]
pub(crate) struct RequestChangesArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// The hash of the checkpoint that you looked at, or its first 12 digits.
    #[arg(long, value_name = "SHA256")]
    pub(crate) hash: Option<String>,
    /// What has to be done.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein show last                     lists the findings
  checkrein close-finding last f-7k3m9qfx-2 --reason 'the file is generated'")]
pub(crate) struct CloseFindingArgs {
    /// An id, the beginning of one, a name, or `last`.
    pub(crate) task: String,
    /// The finding.
    pub(crate) finding: String,
    /// Why it is no longer open.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein takeover last                 lays the files out in a new folder and names it
  checkrein takeover last --to ../mine
  checkrein handback last --note 'fixed by hand'

The target is not touched: what you hand back is reviewed like any other change.")]
pub(crate) struct TakeoverArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// The folder to lay the files out in; new or empty [default: one in the data folder].
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein handback last --note 'fixed the rounding, the agent had the wrong file'")]
pub(crate) struct HandbackArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// What you did.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein amend last --objective 'Round half to even.'
  checkrein amend last --spec spec.md
  checkrein amend last --plan checkrein.yaml --constraints checkrein.yaml

An amendment makes verdicts on the old text stale; the work is reviewed against the new one.")]
#[command(group = clap::ArgGroup::new("changes").required(true).multiple(true))]
pub(crate) struct AmendArgs {
    /// An id, the beginning of one, a name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) task: String,
    /// A new objective.
    #[arg(long, value_name = "TEXT", group = "changes")]
    pub(crate) objective: Option<String>,
    /// A file with the new specification.
    #[arg(long, value_name = "FILE", group = "changes")]
    pub(crate) spec: Option<PathBuf>,
    /// A task file whose plan is the new one.
    #[arg(long, value_name = "TASK.yaml", group = "changes")]
    pub(crate) plan: Option<PathBuf>,
    /// A task file whose constraints are the new ones.
    #[arg(long, value_name = "TASK.yaml", group = "changes")]
    pub(crate) constraints: Option<PathBuf>,
}
