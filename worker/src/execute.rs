//! Runs the command of a step in its scratch and keeps what it printed.
//!
//! The command sees a scrubbed environment and is confined; it, and all that
//! it starts, is gone when this returns. What it printed is evidence whatever
//! bytes it holds. Whether the step is done is judged elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use checkrein_shared::process::{Command, Confinement, Error, Finished, Limits, Output};
use checkrein_shared::records::{AgentSpec, HomeDir};

use crate::config::Services;
use crate::environment::Variables;
use crate::orders::Orders;
use crate::output;
use crate::room::Room;

/// How much output of one command is kept.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// How long an effect that is under way may go on when the worker ends; well within what the worker itself has.
const EFFECT_EXIT_GRACE: Duration = Duration::from_secs(30);

/// A command of a step.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) variables: Variables,
    pub(crate) time: Duration,
    /// The user's target, which the command must not even read.
    pub(crate) target: &'a Path,
    /// The agent, where the command is one.
    pub(crate) agent: Option<&'a AgentSpec>,
    pub(crate) confinement_required: bool,
    /// Whether it is an effect: a pause waits for its end, and the end of the worker for a while.
    pub(crate) patient: bool,
}

/// A command that ran.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) finished: Finished,
    /// What it printed, not redacted yet.
    pub(crate) output: Vec<u8>,
    /// How much of it is left out.
    pub(crate) dropped_bytes: u64,
}

/// Runs the command until it ends, its time is up, or its orders say so.
pub(crate) async fn run(services: &Services, room: &Room, call: Call<'_>, orders: &Orders) -> Result<Ran, Error> {
    let config = &services.config;
    let limits = Limits { time: call.time, grace: config.kill_grace, output_bytes_max: OUTPUT_BYTES_MAX };
    let confinement = confinement(services, room, &call);
    let patient = call.patient;
    let command =
        Command::new(call.argv.iter().map(String::as_str), room.scratch(), Output::Merged(room.output()), limits)
            .envs(call.variables)
            .confined(confinement);
    let kill = async {
        match patient {
            true => orders.clone().kill_effect(EFFECT_EXIT_GRACE).await,
            false => orders.clone().kill(config.park_grace).await,
        }
    };
    let finished = command.run(&config.supervisor, kill).await?;
    let bytes = tokio::fs::read(room.output()).await.map_err(Error::Io)?;
    let (output, dropped_bytes) = output::close_gap(bytes, &finished.stdout);
    Ok(Ran { finished, output, dropped_bytes })
}

fn confinement(services: &Services, room: &Room, call: &Call<'_>) -> Confinement {
    let config = &services.config;
    let mut hidden = config.hidden.clone();
    hidden.extend([call.target.to_owned(), config.cache_dir.clone()]);
    let mut writable = room.writable();
    let home = config.environment.get("HOME").map(PathBuf::from);
    match (call.agent.map(|agent| agent.home), home) {
        (Some(HomeDir::User), Some(home)) => {
            make_usual_folders(&home);
            writable.extend(own_folders(&home, &hidden));
        }
        _ => hidden.extend(config.credentials.iter().cloned()),
    }
    Confinement::new(writable, hidden, call.confinement_required)
}

/// Folders that programs expect in a home, and make where they are missing; here they could not.
const USUAL_FOLDERS: [&str; 4] = [".cache", ".config", ".local/share", ".local/state"];

/// How deep a folder that holds something hidden is looked into for what does not.
const DEPTH_MAX: usize = 4;

fn make_usual_folders(home: &Path) {
    for folder in USUAL_FOLDERS {
        if let Err(error) = std::fs::create_dir_all(home.join(folder)) {
            tracing::debug!(%error, folder, "a usual folder of the user's home can't be made");
        }
    }
}

/// Where programs keep their own things in a user's home: its dot folders without what is hidden in them, and
/// not those whose files would run later without anybody asking.
fn own_folders(home: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    const NEVER: [&str; 3] = [".ssh", ".gnupg", ".git"];
    let own = folders_in(home).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') && !NEVER.contains(&&*name)
    });
    own.flat_map(|path| without_hidden(path, hidden, DEPTH_MAX)).collect()
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// The folder itself, or where it holds something hidden those below it that do not.
fn without_hidden(path: PathBuf, hidden: &[PathBuf], depth: usize) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
        return vec![path];
    }
    match depth {
        0 => Vec::new(),
        _ => folders_in(&path).flat_map(|below| without_hidden(below, hidden, depth - 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_with_the_users_home_may_write_its_own_folders_only() {
        let home = tempfile::tempdir().unwrap();
        for folder in [".agent", ".ssh", ".data/blobs", "documents"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join(".profile"), "").unwrap();
        let hidden = [home.path().join(".data/blobs")];
        assert_eq!(own_folders(home.path(), &hidden), [home.path().join(".agent")]);
    }

    #[test]
    fn the_usual_folders_are_there_and_writable_beside_a_data_folder_among_them() {
        let home = tempfile::tempdir().unwrap();
        make_usual_folders(home.path());
        std::fs::create_dir_all(home.path().join(".local/state/checkrein")).unwrap();
        let hidden = [home.path().join(".local/state/checkrein")];
        let mut own = own_folders(home.path(), &hidden);
        own.sort();
        assert_eq!(own, [".cache", ".config", ".local/share"].map(|folder| home.path().join(folder)));
    }
}
