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
    let command =
        Command::new(call.argv.iter().map(String::as_str), room.scratch(), Output::Merged(room.output()), limits)
            .envs(call.variables)
            .confined(confinement);
    let finished = command.run(&config.supervisor, orders.clone().kill(config.park_grace)).await?;
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
    if let (Some(HomeDir::User), Some(home)) = (call.agent.map(|agent| agent.home), home) {
        writable.extend(own_folders(&home, &hidden));
    }
    Confinement::new(writable, hidden, call.confinement_required)
}

/// Where programs keep their own things in a user's home: its dot folders, but none that holds something hidden, and
/// not those whose files would run later without anybody asking.
fn own_folders(home: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    const NEVER: [&str; 3] = [".ssh", ".gnupg", ".git"];
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let own = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        name.starts_with('.')
            && !NEVER.contains(&&*name)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !hidden.iter().any(|hidden| hidden.starts_with(&path) || path.starts_with(hidden))
    });
    own.map(|entry| entry.path()).collect()
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
}
