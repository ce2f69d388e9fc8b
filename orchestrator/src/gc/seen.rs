//! What was met on the way along references, and as what.
//!
//! A digest says nothing about what its bytes are good for: a file may have
//! exactly the bytes of a directory that is kept, too. So what was met as one
//! thing is followed again when it is named as another that is read differently.

use std::collections::HashMap;

use checkrein_shared::digest::Digest;

use super::refs::Kind;

/// What was met.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashMap<Digest, Met>);

#[derive(Debug, Clone, Copy)]
struct Met {
    /// As what it counts.
    kind: Kind,
    /// Whether it must be there.
    is_sure: bool,
    /// The kinds as which it was read, a bit for each.
    read_as: u16,
}

impl Seen {
    /// Notes a reference, and tells whether it has to be followed.
    pub(crate) fn meet(&mut self, kind: Kind, digest: Digest, is_sure: bool) -> bool {
        let read_as = if kind.is_read() { 1 << kind as u16 } else { 0 };
        let Some(met) = self.0.get_mut(&digest) else {
            self.0.insert(digest, Met { kind, is_sure, read_as });
            return true;
        };
        if !is_sure {
            return false;
        }
        // Something that only looked like a reference is one after all: now it counts as what it is.
        let is_new = !met.is_sure || read_as & !met.read_as != 0;
        if !met.is_sure {
            (met.kind, met.is_sure) = (kind, true);
        }
        met.read_as |= read_as;
        is_new
    }

    /// As what a blob counts.
    pub(super) fn kind(&self, digest: Digest) -> Option<Kind> {
        self.0.get(&digest).map(|met| met.kind)
    }

    /// Everything that must be there.
    pub(super) fn required(&self) -> impl Iterator<Item = Digest> {
        self.0.iter().filter(|(_, met)| met.is_sure).map(|(digest, _)| *digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_as_a_file_is_followed_when_it_is_a_directory_too() {
        let (mut seen, digest) = (Seen::default(), Digest::of("both"));
        assert!(seen.meet(Kind::File, digest, true));
        assert!(!seen.meet(Kind::File, digest, true));
        assert!(!seen.meet(Kind::Evidence, digest, true), "neither is read");
        assert!(seen.meet(Kind::Tree, digest, true));
        assert!(seen.meet(Kind::Index, digest, true));
        assert!(!seen.meet(Kind::Tree, digest, true));
        assert!(!seen.meet(Kind::Unknown, digest, false));
        assert_eq!(seen.kind(digest), Some(Kind::File));
    }

    #[test]
    fn what_only_looked_like_a_reference_becomes_required_once() {
        let (mut seen, digest) = (Seen::default(), Digest::of("maybe"));
        assert!(seen.meet(Kind::Unknown, digest, false));
        assert!(!seen.meet(Kind::Unknown, digest, false));
        assert_eq!(seen.required().count(), 0);
        assert!(seen.meet(Kind::File, digest, true));
        assert!(!seen.meet(Kind::File, digest, true));
        assert_eq!((seen.kind(digest), seen.required().count()), (Some(Kind::File), 1));
    }
}
