//! Confinement of a command by Landlock: what it may write, and what it may not even read.
//!
//! Landlock only ever adds permissions, so "everything but these paths" is written out as rules: from `/` down, each
//! folder that holds no hidden path gets one rule, each folder on the way to a hidden path is expanded into its entries
//! as they are at that moment. What appears later beside a hidden path is therefore unreadable, never the reverse; and
//! the folders on the way can't be listed (paths through them work).
//!
//! Root is confined too, so a command of root also loses the capabilities that reach around Landlock (reading other
//! processes' memory, opening files by handle, loading kernel code).
//!
//! What it does not do: it limits no network, and on kernels before 7.1 it can't stop a connection to a socket file
//! that the user may open (a container engine's, say).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use caps::{CapSet, Capability};
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};

use super::wire::Bytes;

/// The newest Landlock version whose every right is asked for; older kernels enforce what they know.
const NEWEST: ABI = ABI::V7;

/// The oldest version that counts as confined: before it a file could be emptied (`truncate`) outside the writable paths.
const OLDEST: ABI = ABI::V3;

/// Bounds the expansion: a hidden path beside this many entries is a mistake.
const RULES_MAX: usize = 20_000;

/// Devices that every program may write.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// What a command may reach. Everything that is not hidden can be read and executed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    write: Vec<Bytes>,
    hidden: Vec<Bytes>,
    required: bool,
}

impl Confinement {
    /// A confinement that allows writing only below `write`, each of which must exist, and reading anything but what is
    /// below `hidden`. A writable path inside a hidden one (a scratch in the data directory) is readable too.
    ///
    /// Where `required` is false and the kernel offers no Landlock, the command runs unconfined and
    /// [`super::Finished::confinement`] says so; otherwise it is refused.
    pub fn new(
        write: impl IntoIterator<Item = PathBuf>,
        hidden: impl IntoIterator<Item = PathBuf>,
        required: bool,
    ) -> Self {
        let bytes = |paths: &mut dyn Iterator<Item = PathBuf>| paths.map(Bytes::of).collect();
        Self { write: bytes(&mut write.into_iter()), hidden: bytes(&mut hidden.into_iter()), required }
    }

    /// Confines the calling thread and all processes that it starts from now on. Returns what is in force.
    pub(super) fn enforce_on_this_thread(&self) -> Result<String, String> {
        let status = self.restrict()?;
        match &status.landlock {
            LandlockStatus::Available { effective_abi, .. }
                if *effective_abi >= OLDEST && status.ruleset != RulesetStatus::NotEnforced =>
            {
                drop_capabilities()?;
                Ok(format!("landlock-v{}", *effective_abi as i32))
            }
            status if self.required => Err(absence(status)),
            status => Ok(format!("none: {}", absence(status))),
        }
    }

    fn restrict(&self) -> Result<RestrictionStatus, String> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create)
            .map_err(|e| e.to_string())?;
        for path in readable(&self.hidden())? {
            ruleset = allow(ruleset, &path, Rights::Read)?;
        }
        for device in DEVICES.map(Path::new).into_iter().filter(|device| device.exists()) {
            ruleset = allow(ruleset, device, Rights::Device)?;
        }
        for path in &self.write {
            ruleset = allow(ruleset, &path.to_path(), Rights::All)?;
        }
        ruleset.restrict_self().map_err(|e| e.to_string())
    }

    /// The hidden paths as the kernel sees them: a rule follows the file, so a symbolic link hides nothing.
    fn hidden(&self) -> BTreeSet<PathBuf> {
        let paths = self.hidden.iter().map(Bytes::to_path);
        paths.map(|path| path.canonicalize().unwrap_or(path)).collect()
    }
}

/// What a root user in a container ordinarily needs to build and test software.
const KEPT_CAPABILITIES: [Capability; 8] = [
    Capability::CAP_CHOWN,
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_FOWNER,
    Capability::CAP_FSETID,
    Capability::CAP_KILL,
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_SETGID,
    Capability::CAP_SETUID,
];

/// Takes from the bounding set what root would get back when the command is executed. Another user gets nothing back.
fn drop_capabilities() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let held = caps::read(None, CapSet::Bounding).map_err(|e| e.to_string())?;
    for capability in held.into_iter().filter(|capability| !KEPT_CAPABILITIES.contains(capability)) {
        caps::drop(None, CapSet::Bounding, capability)
            .map_err(|e| format!("root's capability {capability} can't be dropped: {e}"))?;
    }
    Ok(())
}

fn absence(status: &LandlockStatus) -> String {
    match status {
        LandlockStatus::NotEnabled => "Landlock is not enabled in this kernel (boot parameter `lsm=`)".to_owned(),
        LandlockStatus::NotImplemented => "this kernel has no Landlock".to_owned(),
        LandlockStatus::Available { effective_abi, .. } => {
            format!(
                "this kernel has Landlock version {}, and {} is the oldest that suffices",
                *effective_abi as i32, OLDEST as i32
            )
        }
    }
}

#[derive(Clone, Copy)]
enum Rights {
    Read,
    Device,
    All,
}

fn allow(ruleset: RulesetCreated, path: &Path, rights: Rights) -> Result<RulesetCreated, String> {
    // A path that vanished, or that we can't open, needs no permission.
    let (Ok(file), Ok(metadata)) = (PathFd::new(path), path.metadata()) else {
        return match rights {
            Rights::All => Err(format!("the writable path `{}` can't be opened", path.display())),
            Rights::Read | Rights::Device => Ok(ruleset),
        };
    };
    let access = match rights {
        Rights::Read => AccessFs::from_read(NEWEST),
        Rights::Device => AccessFs::from_read(NEWEST) | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
        Rights::All => AccessFs::from_all(NEWEST),
    };
    let access = if metadata.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(file, access)).map_err(|e| format!("`{}`: {e}", path.display()))
}

/// The fewest paths that together cover everything except what is below `hidden`.
fn readable(hidden: &BTreeSet<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut covered = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(folder) = open.pop() {
        if hidden.contains(&folder) {
            continue;
        }
        if !hidden.iter().any(|path| path.starts_with(&folder)) {
            covered.push(folder);
        } else if let Ok(entries) = folder.read_dir() {
            // Links are left out: what they point to has its own rule, or is hidden.
            let entries = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            open.extend(entries.map(|entry| entry.path()));
        }
        if covered.len() + open.len() > RULES_MAX {
            return Err(format!("the hidden paths lie beside more than {RULES_MAX} files"));
        }
    }
    Ok(covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_hidden_paths_is_covered_by_few_rules() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["home/me/.keys", "home/me/project", "home/you", "opt"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let hidden = BTreeSet::from([root.join("home/me/.keys")]);
        let covered = readable(&hidden).unwrap();
        let covers = |path: &str| covered.iter().any(|rule| root.join(path).starts_with(rule));
        assert!(covers("home/me/project/src") && covers("home/you") && covers("opt"));
        assert!(!covers("home/me/.keys") && !covers("home/me/.keys/id") && !covers("home/me/later"));
        assert_eq!(readable(&BTreeSet::new()).unwrap(), [PathBuf::from("/")]);
        assert_eq!(readable(&BTreeSet::from([PathBuf::from("/")])).unwrap(), Vec::<PathBuf>::new());
    }
}
