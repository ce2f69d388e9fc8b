//! What remains to be done at one path, from what stands there and in its slot.
//!
//! It is the same before the first attempt and after a crash at any step, so
//! there is no separate repair. It only decides; it touches nothing.

use super::plan::Op;
use super::standing::Standing;

/// What remains to be done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remains {
    /// Nothing.
    Nothing,
    /// The new file has to be staged, then swapped.
    StageAndSwap,
    /// The new file is staged; the swap remains. For a deletion, the swap alone.
    Swap,
    /// A crash came between a swap and its check, and the swap displaced what nobody expected: it goes back.
    GiveBack,
    /// What stands there is neither old nor new.
    Conflict,
}

/// Decides for one path. `clears` says that what is in the way is this changeset's own doing, or will be gone
/// once its deletions are done; see [`super::survey`].
pub(super) fn classify(op: &Op, target: &Standing, slot: &Standing, clears: bool) -> Remains {
    let (old, new) = (op.old.as_ref(), op.new.as_ref());
    let foreign = |slot: &Standing| !slot.is(None) && !slot.is(old) && !slot.is(new);
    if target.is(new) || (new.is_none() && clears) {
        // An addition displaces nothing, so whatever is in its slot is no obstacle.
        return if old.is_some() && foreign(slot) { Remains::GiveBack } else { Remains::Nothing };
    }
    if target.is(old) || (old.is_none() && clears) {
        return match new {
            Some(_) if !slot.is(new) => Remains::StageAndSwap,
            _ => Remains::Swap,
        };
    }
    Remains::Conflict
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;
    use checkrein_shared::tree::{Content, Entry, Mode, RelPath};

    use super::*;

    fn entry(text: &str) -> Entry {
        let mode = Mode::from_bits(0o644);
        Entry::File { digest: Digest::of(text), size: text.len() as u64, mode, content: Content::Stored }
    }

    fn standing(text: &str) -> Standing {
        if text.is_empty() { Standing::Nothing } else { Standing::Entry(entry(text)) }
    }

    fn check(old: &str, new: &str, target: &str, slot: &str, expect: Remains) {
        let side = |text: &str| (!text.is_empty()).then(|| entry(text));
        let op = Op { number: 0, path: RelPath::from_bytes("p").unwrap(), old: side(old), new: side(new) };
        let found = classify(&op, &standing(target), &standing(slot), false);
        assert_eq!(found, expect, "{old:?} -> {new:?}, {target:?} stands, {slot:?} is in the slot");
    }

    #[test]
    fn every_moment_of_a_replacement() {
        check("old", "new", "old", "", Remains::StageAndSwap);
        check("old", "new", "old", "new", Remains::Swap);
        check("old", "new", "new", "old", Remains::Nothing);
        check("old", "new", "new", "", Remains::Nothing);
        check("old", "new", "new", "mine", Remains::GiveBack);
        check("old", "new", "mine", "new", Remains::Conflict);
        check("old", "new", "", "new", Remains::Conflict);
        check("old", "new", "old", "old", Remains::StageAndSwap);
    }

    #[test]
    fn every_moment_of_an_addition_and_a_deletion() {
        check("", "new", "", "", Remains::StageAndSwap);
        check("", "new", "", "new", Remains::Swap);
        check("", "new", "new", "", Remains::Nothing);
        check("", "new", "mine", "new", Remains::Conflict);
        check("old", "", "old", "", Remains::Swap);
        check("old", "", "", "old", Remains::Nothing);
        check("old", "", "", "", Remains::Nothing);
        check("old", "", "", "mine", Remains::GiveBack);
        check("old", "", "mine", "", Remains::Conflict);
    }
}
