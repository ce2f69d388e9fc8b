//! The keys of the roles in this process, made on first use.
//!
//! The reviewer has a private key; the ring says whose signatures count. Both
//! are readable by their owner only.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use checkrein_shared::causes::with_causes;
use checkrein_shared::json;
use checkrein_shared::records::Role;
use checkrein_shared::signing::{KeyRecord, KeyRing, SigningKey};
use checkrein_shared::time::Timestamp;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::failure::Failure;

/// The name of the reviewer in this process.
pub(super) const REVIEWER: &str = "reviewer";

/// See the module.
pub(super) struct Keys {
    folder: PathBuf,
    /// Whose signatures count.
    pub(super) ring: KeyRing,
}

impl Keys {
    /// Reads the keys, or makes them where there are none.
    pub(super) fn load_or_make(folder: &Path) -> Result<Self, Failure> {
        let ring_file = folder.join("ring.json");
        let mut keys = Self { folder: folder.to_owned(), ring: KeyRing::new() };
        if ring_file.exists() {
            keys.ring = read_ring(&ring_file)?;
        }
        if keys.reviewer_file().exists() && !keys.ring.keys().is_empty() {
            return Ok(keys);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(folder, &error))?;
        let key = if keys.reviewer_file().exists() { keys.reviewer()? } else { make(&keys.reviewer_file())? };
        let owner = REVIEWER.parse().expect("the name is a valid id");
        let record = KeyRecord::new(key.public_key(), Role::Reviewer, owner, Timestamp::now());
        keys.ring.add(record).map_err(|error| failed(&ring_file, &error))?;
        write_ring(&ring_file, &keys.ring)?;
        Ok(keys)
    }

    fn reviewer_file(&self) -> PathBuf {
        self.folder.join("reviewer.key")
    }

    /// The reviewer's private key.
    pub(super) fn reviewer(&self) -> Result<SigningKey, Failure> {
        SigningKey::load(&self.reviewer_file()).map_err(|error| Failure::unable(with_causes(&error)))
    }
}

fn failed(path: &Path, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::caused("the keys can't be used", error).at(path.display())
}

#[expect(clippy::disallowed_methods, reason = "keys are drawn here, at the edge")]
fn make(file: &Path) -> Result<SigningKey, Failure> {
    let mut random = Zeroizing::new([0u8; 32]);
    getrandom::fill(random.as_mut_slice())
        .map_err(|error| Failure::unable(format!("the system gives no random bytes: {error}")))?;
    let key = SigningKey::from_random(&random);
    key.save(file).map_err(|error| failed(file, &error))?;
    Ok(key)
}

fn read_ring(file: &Path) -> Result<KeyRing, Failure> {
    let bytes = std::fs::read(file).map_err(|error| failed(file, &error))?;
    json::parse_as("key ring", &bytes).map_err(|error| {
        let mut failure = failed(file, &error).hint("restore the file from a backup: it says whose verdicts count");
        failure.exit = Exit::Integrity;
        failure
    })
}

/// Writes the ring so that a crash leaves the old file or the new one.
fn write_ring(file: &Path, ring: &KeyRing) -> Result<(), Failure> {
    let bytes = json::canonical(ring).map_err(|error| failed(file, &error))?;
    let temporary = file.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        opened.write_all(&bytes)?;
        opened.sync_all()?;
        std::fs::rename(&temporary, file)
    };
    write().map_err(|error| failed(file, &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_are_made_once_and_are_nobody_elses_business() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("keys");
        let first = Keys::load_or_make(&folder).unwrap();
        let second = Keys::load_or_make(&folder).unwrap();
        assert_eq!(first.ring, second.ring);
        assert_eq!(first.reviewer().unwrap().key_id(), second.ring.keys()[0].key_id);
        for path in [folder.clone(), folder.join("reviewer.key"), folder.join("ring.json")] {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }

    #[test]
    fn a_damaged_ring_is_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("keys");
        Keys::load_or_make(&folder).unwrap();
        std::fs::write(folder.join("ring.json"), "{").unwrap();
        let failure = Keys::load_or_make(&folder).err().unwrap();
        assert_eq!(failure.exit, Exit::Integrity);
        assert_eq!(std::fs::read(folder.join("ring.json")).unwrap(), b"{");
    }
}
