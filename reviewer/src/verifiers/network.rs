//! How a verifier is kept off the network: a user and a network namespace of its
//! own, made with `unshare`, with a loopback that nobody else is on.
//!
//! Where the system does not allow that, the verifier runs with the network, and
//! its evidence says so. Nothing is pretended.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use checkrein_shared::process::{Command, Confinement, Limits, Output, Supervisor};

/// Runs inside the namespaces: brings loopback up where `ip` is to be had, gives up the rights that this took, and goes on.
const ENTER: &str = "ip link set lo up 2>/dev/null; exec setpriv --ambient-caps=-all --inh-caps=-all -- \"$@\"";

/// Makes the namespaces, before the confinement that would forbid it. The user keeps its number in there: programs
/// that find themselves to be nobody may refuse to start others.
const STARTER: [&str; 9] = ["unshare", "--user", "--map-current-user", "--net", "--keep-caps", "sh", "-c", ENTER, "sh"];

/// Tells whether loopback is up: its flags are odd then.
const PROBE: &str = "read flags </sys/class/net/lo/flags 2>/dev/null || flags=0; \
    ip -o link show lo 2>/dev/null | grep -q '[<,]UP[,>]' && echo up; exit 0";

/// What this machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// A network namespace of its own.
    Namespace {
        /// Whether a verifier can reach itself over loopback in it.
        loopback: bool,
    },
    /// None, and why.
    Unavailable(String),
}

impl Isolation {
    /// Tries it out, confined like a verifier.
    pub(crate) async fn probe(supervisor: &Supervisor, path: &OsString, work_dir: &Path) -> Self {
        let folder = match tempfile::Builder::new().prefix("probe-").tempdir_in(work_dir) {
            Ok(folder) => folder,
            Err(error) => return Self::Unavailable(format!("no folder to try it in: {error}")),
        };
        let log = folder.path().join("log");
        let limits = Limits { time: Duration::from_secs(10), grace: Duration::ZERO, output_bytes_max: 4096 };
        let argv = ["sh", "-c", PROBE].map(OsString::from);
        let command = Command::new(argv, folder.path(), Output::Merged(log.clone()), limits)
            .env("PATH", path)
            .confined(Confinement::new([folder.path().to_owned()], [], false));
        let finished = command.run(&supervisor.started_by(&STARTER), std::future::pending()).await;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        match finished {
            Ok(finished) if finished.ending.is_success() => Self::Namespace { loopback: said.contains("up") },
            Ok(_) => Self::Unavailable(said.lines().last().unwrap_or("`unshare` failed").trim().to_owned()),
            Err(error) => Self::Unavailable(error.to_string()),
        }
    }

    /// The supervisor whose commands have no network, where that is possible.
    pub(super) fn apply(&self, supervisor: &Supervisor) -> Supervisor {
        match self {
            Self::Namespace { .. } => supervisor.started_by(&STARTER),
            Self::Unavailable(_) => supervisor.clone(),
        }
    }

    /// For evidence: what a verifier that wants no network gets.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Namespace { loopback: true } => "none (its own namespace, with loopback)".to_owned(),
            Self::Namespace { loopback: false } => "none (its own namespace, without loopback)".to_owned(),
            Self::Unavailable(why) => format!("NOT CUT OFF, though the policy wants it: {why}"),
        }
    }
}
