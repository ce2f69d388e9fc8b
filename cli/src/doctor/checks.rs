//! The checks of `doctor`, one a function.

use std::path::Path;
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::process::{Command, Confinement, Ending, Limits, Output, Supervisor};
use nix::sys::statfs::statfs;

use super::{Finding, Grade};
use crate::agents;
use crate::client;
use crate::context::Context;

/// Less free space than this is worth a word: 2 GiB.
const SPACE_SCARCE: u64 = 2 << 30;
/// Less than this stops the journal soon: 200 MiB.
const SPACE_NONE: u64 = 200 << 20;

/// The programs that are needed, or useful.
pub(super) fn programs() -> Vec<Finding> {
    let sh = match agents::find_program("sh") {
        Some(path) => Finding::new("sh", Grade::Good, path.display().to_string()),
        None => Finding::new("sh", Grade::Bad, "there is no `sh` on the search path").hint("install a POSIX shell"),
    };
    let git = match std::process::Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            Finding::new("git", Grade::Good, String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Finding::new("git", Grade::Less, "there is no `git`: plain folders work, repositories don't")
            .hint("install git 2.30 or later"),
    };
    vec![sh, git]
}

/// Whether the data folder can be written and flushed, and on which file system it stands.
pub(super) fn data_folder(data: &Path) -> Finding {
    let shown = data.display();
    // A folder that is not there yet is made by the first command; its parent decides whether that works.
    let existing = data.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let probe = tempfile::Builder::new().prefix(".checkrein-doctor").tempfile_in(existing);
    if let Err(error) = probe.and_then(|file| file.as_file().sync_all()) {
        return Finding::new("data", Grade::Bad, format!("{shown} can't be written: {error}"))
            .hint("name another folder with --data DIR or CHECKREIN_DATA");
    }
    match file_system(existing) {
        Some((name, true)) => Finding::new("data", Grade::Less, format!("{shown} is on {name}"))
            .hint("a folder on a local disk is faster and safer against power cuts"),
        Some((name, false)) => Finding::new("data", Grade::Good, format!("{shown} on {name}")),
        None => Finding::new("data", Grade::Good, shown.to_string()),
    }
}

/// The name of a file system, and whether its promises about flushing are weak.
fn file_system(folder: &Path) -> Option<(String, bool)> {
    let kind = statfs(folder).ok()?.filesystem_type().0;
    let known: &[(i64, &str, bool)] = &[
        (0xef53, "ext4", false),
        (0x5846_5342, "xfs", false),
        (0x9123_683e, "btrfs", false),
        (0x2fc1_2fc1, "zfs", false),
        (0xf2f5_2010, "f2fs", false),
        (0x794c_7630, "overlayfs", false),
        (0x0102_1994, "tmpfs, which a reboot empties", true),
        (0x6969, "NFS", true),
        (0xff53_4d42, "CIFS", true),
        (0xfe53_4d42, "SMB", true),
        (0x0102_1997, "9p", true),
        (0x6573_5546, "FUSE", true),
    ];
    let found = known.iter().find(|(number, _, _)| i128::from(*number) == i128::from(kind));
    Some(found.map_or_else(|| (format!("file system {kind:#x}"), false), |(_, name, weak)| ((*name).to_owned(), *weak)))
}

/// How much room there is.
pub(super) fn disk_space(data: &Path) -> Finding {
    let existing = data.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let Ok(found) = statfs(existing) else {
        return Finding::new("disk", Grade::Less, "the free space can't be told");
    };
    let block = u64::try_from(found.block_size()).unwrap_or(0);
    let free = found.blocks_available().saturating_mul(block);
    let text = format!("{} MiB free", free >> 20);
    match free {
        ..SPACE_NONE => Finding::new("disk", Grade::Bad, text).hint("free some space, or move the data folder"),
        SPACE_NONE..SPACE_SCARCE => {
            Finding::new("disk", Grade::Less, text).hint("every changed file is kept as a blob")
        }
        _ => Finding::new("disk", Grade::Good, text),
    }
}

/// Whether commands can be run, watched and confined.
pub(super) async fn supervisor() -> Vec<Finding> {
    match try_supervisor().await {
        Ok(confinement) if confinement.starts_with("landlock") => vec![
            Finding::new("supervisor", Grade::Good, "runs a command and leaves nothing behind"),
            Finding::new("confinement", Grade::Good, confinement),
        ],
        Ok(confinement) => vec![
            Finding::new("supervisor", Grade::Good, "runs a command and leaves nothing behind"),
            Finding::new("confinement", Grade::Less, confinement)
                .hint("agents run unconfined: changes past the review are noticed, not prevented; use Linux 6.2 or later with Landlock"),
        ],
        Err(why) => vec![Finding::new("supervisor", Grade::Bad, why).hint("is /proc mounted?")],
    }
}

/// Runs `true`, confined if possible. Gives back what confined it.
async fn try_supervisor() -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}"))?;
    let limits = Limits { time: Duration::from_secs(10), grace: Duration::from_secs(1), output_bytes_max: 64 * 1024 };
    let output = Output::Merged(folder.path().join("out"));
    let command = Command::new(["true"], folder.path(), output, limits)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .confined(Confinement::new([folder.path().to_owned()], [], false));
    let ran = command.run(&Supervisor::current_exe(), std::future::pending()).await;
    let finished = ran.map_err(|error| with_causes(&error))?;
    match finished.ending {
        Ending::Exited(0) => Ok(finished.confinement),
        ending => Err(format!("`true` ended with {ending:?}")),
    }
}

/// Whether a process has the data folder open.
pub(super) async fn instance(context: &Context) -> Finding {
    match client::connect(context).await {
        Ok(Some((_, health))) => {
            let text = format!("process {} (version {}) has the data folder open", health.pid, health.version);
            let same = health.version == env!("CARGO_PKG_VERSION");
            let finding = Finding::new("instance", if same { Grade::Good } else { Grade::Less }, text);
            if same { finding } else { finding.hint("it is of another version: restart it") }
        }
        Ok(None) => Finding::new("instance", Grade::Good, "none is running: commands open the data folder themselves"),
        Err(failure) => {
            Finding::new("instance", Grade::Less, failure.what()).hint("stop the process that has the folder open")
        }
    }
}

/// The known agents that are installed.
pub(super) fn agents() -> Finding {
    let found: Vec<&str> = agents::KNOWN
        .iter()
        .filter(|known| agents::find_program(known.name).is_some())
        .map(|known| known.name)
        .collect();
    if found.is_empty() {
        let known = agents::KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
        return Finding::new("agents", Grade::Less, format!("none of {known} is installed"))
            .hint("any program can be an agent: --agent 'CMD'; the demos need none");
    }
    Finding::new("agents", Grade::Good, found.join(", "))
}
