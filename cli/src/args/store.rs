//! Arguments of `store`: looking after what the data folder holds.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Checks the journal, the blobs that it names, the chains and the index; changes nothing.
    Verify,
    /// Makes the index anew from the journal.
    Rebuild(RebuildArgs),
    /// Counts records, segments, blobs and bytes.
    Stats,
    /// Copies the data folder while it is in use, and checks the copy.
    Backup(BackupArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein store rebuild                  after damage to the index; the journal is the truth
  checkrein store rebuild --accept-loss    go on although acknowledged records are gone from the journal

Stop `checkrein up` first. Without --accept-loss nothing is ever given up: where the index or the file HEAD remember
more than the journal has, the command says what is gone, changes nothing and ends with exit code 7. Restore a backup
if there is one; --accept-loss makes the loss final.")]
pub(crate) struct RebuildArgs {
    /// Goes on with what the journal has, although more had been acknowledged.
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  checkrein store backup /mnt/backup/monday            also while `checkrein up` runs
  checkrein --data /mnt/backup/monday show last        a backup is a data folder: look into it,
  cp -a /mnt/backup/monday ~/.local/state/checkrein    or put it in the place of a lost one

The copy holds the journal up to its newest record, every blob that its records name, and the keys: keep it as safe
as the data folder. It is checked before the command says that it is done.")]
pub(crate) struct BackupArgs {
    /// A folder that does not exist yet or is empty, best on another disk.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
