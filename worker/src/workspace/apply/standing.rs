//! What stands at a path of a target right now.

use std::io;

use checkrein_shared::tree::{Content, Entry, Mode, RelPath};
use rustix::fs::FileType;

use crate::workspace::beneath::{self, Place, Root};
use crate::workspace::read::read_stable;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    Nothing,
    Entry(Entry),
    Directory,
    /// A pipe, a socket or a device.
    Special,
    /// Something on the way is no directory.
    Blocked(RelPath),
}

impl Standing {
    /// Whether it is this entry.
    pub(super) fn is(&self, entry: Option<&Entry>) -> bool {
        match (self, entry) {
            (Self::Nothing, None) => true,
            (Self::Entry(a), Some(b)) => a.same(b),
            _ => false,
        }
    }

    pub(super) fn into_entry(self) -> Option<Entry> {
        match self {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn note(&self) -> String {
        match self {
            Self::Nothing => "nothing stands there".to_owned(),
            Self::Entry(Entry::File { digest, mode, .. }) => format!("a file stands there: mode {mode}, {digest}"),
            Self::Entry(Entry::Symlink { target }) => format!("a link stands there: to `{target}`"),
            Self::Directory => "a directory stands there".to_owned(),
            Self::Special => "something stands there that is neither a file nor a link".to_owned(),
            Self::Blocked(path) => format!("`{path}`, on the way to it, is not a directory"),
        }
    }
}

/// Looks at a path beneath a root.
pub(super) fn standing(root: &Root, path: &RelPath) -> io::Result<Standing> {
    match root.place(path) {
        Ok(place) => standing_at(&place),
        Err(e) if beneath::is_absent(&e) => blocked(root, path),
        Err(e) => Err(e),
    }
}

/// Looks at a name in an open directory.
pub(super) fn standing_at(place: &Place<'_>) -> io::Result<Standing> {
    match look(place) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Standing::Nothing),
        other => other,
    }
}

fn look(place: &Place<'_>) -> io::Result<Standing> {
    Ok(match FileType::from_raw_mode(place.stat()?.st_mode) {
        FileType::Directory => Standing::Directory,
        FileType::Symlink => Standing::Entry(Entry::Symlink { target: place.link()? }),
        FileType::RegularFile => {
            let contents = read_stable(place, None)?;
            let mode = Mode::from_bits(contents.stat.mode());
            // Where the bytes are stored makes no difference to what stands here.
            let content = Content::Stored;
            Standing::Entry(Entry::File { digest: contents.digest, size: contents.size, mode, content })
        }
        _ => Standing::Special,
    })
}

/// Finds what is in the way to a path, if anything is.
fn blocked(root: &Root, path: &RelPath) -> io::Result<Standing> {
    let mut above: Vec<RelPath> = path.ancestors().collect();
    above.reverse();
    for directory in above {
        match root.place(&directory).and_then(|place| place.stat()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
            Ok(_) => return Ok(Standing::Blocked(directory)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
            Err(e) => return Err(e),
        }
    }
    Ok(Standing::Nothing)
}
