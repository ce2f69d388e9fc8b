//! Copying from the target what the blob store does not have.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use checkrein_shared::digest::Hasher;
use checkrein_shared::tree::{Content, Entry, RelPath};

use super::Error;
use crate::workspace::beneath::{self, Root};
use crate::workspace::rules::Rules;

/// Copies what may be copied and is in the target as the tree has it. Returns what stays absent.
///
/// Sealed files that are ignored stay where they are: an agent gets the user's
/// secrets only where the task carries them.
pub(super) async fn fill(
    target: &Path,
    directory: &Path,
    absent: BTreeMap<RelPath, Entry>,
    rules: &Rules,
) -> Result<BTreeMap<RelPath, Entry>, Error> {
    let (wanted, mut left): (BTreeMap<_, _>, BTreeMap<_, _>) =
        absent.into_iter().partition(|(path, entry)| !is_sealed(entry) || rules.may_be_copied(path));
    let (target, directory) = (target.to_owned(), directory.to_owned());
    let copied = tokio::task::spawn_blocking(move || {
        let at = |path: &Path| {
            let path = path.to_owned();
            |source| Error::Io { path, source }
        };
        let root = Root::open(&target).map_err(at(&target))?;
        let mut left = BTreeMap::new();
        for (path, entry) in wanted {
            if !copy(&root, &path, &entry, &directory).map_err(at(&path.under(&target)))? {
                left.insert(path, entry);
            }
        }
        Ok::<_, Error>(left)
    });
    left.extend(copied.await.expect("copying neither panics nor is aborted")?);
    Ok(left)
}

fn is_sealed(entry: &Entry) -> bool {
    matches!(entry, Entry::File { content: Content::Sealed, .. })
}

/// Copies one file, and takes the copy away again if it is not what the tree has.
fn copy(root: &Root, path: &RelPath, entry: &Entry, directory: &Path) -> io::Result<bool> {
    let Entry::File { digest, mode, .. } = entry else { return Ok(false) };
    let mut source = match root.place(path).and_then(|place| place.open_file()) {
        Err(e) if beneath::is_absent(&e) => return Ok(false),
        other => other?,
    };
    if !source.metadata()?.is_file() {
        return Ok(false);
    }
    let to = path.under(directory);
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
    // This shares the blocks where the file system can.
    io::copy(&mut source, &mut copy)?;
    let mut hasher = Hashing(Hasher::new());
    io::copy(&mut fs::File::open(&to)?, &mut hasher)?;
    if hasher.0.finish() == *digest {
        copy.set_permissions(Permissions::from_mode(mode.bits()))?;
        Ok(true)
    } else {
        fs::remove_file(&to)?;
        Ok(false)
    }
}

struct Hashing(Hasher);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
