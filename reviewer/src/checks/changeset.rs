//! The change as a whole: is it the one that the checkpoint records, and can it be reviewed?

use checkrein_shared::records::Severity;

use crate::check::{Check, Raised, field};
use crate::quote;
use crate::subject::Subject;

/// The recorded changeset is the difference of the two trees, to the last file.
pub(super) fn changeset_complete(subject: &Subject) -> Vec<Raised> {
    let stated = subject.checkpoint.changesets.proposed.hash;
    let computed = subject.changeset.digest();
    let place = || vec![field("changesets/proposed")];
    let mut raised = Vec::new();
    if stated != computed {
        let claim = format!(
            "the checkpoint's changeset {} is not the difference of its base and tree, which is {}",
            stated.short(),
            computed.short()
        );
        raised.push(
            Raised::new(Check::ChangesetComplete, Severity::Critical, claim, place())
                .act("Write a new checkpoint: its changeset must be computed from base and tree."),
        );
    } else if subject.recorded != Some(computed) {
        let claim = format!("the changeset {} that the checkpoint names is not in the blob store", stated.short());
        raised.push(
            Raised::new(Check::ChangesetComplete, Severity::High, claim, place())
                .act("Store the changeset before the checkpoint that names it."),
        );
    }
    raised
}

/// The change is small enough, and what was not looked at is named.
pub(super) fn size(subject: &Subject) -> Vec<Raised> {
    let mut raised = Vec::new();
    let files = subject.changeset.changes().len() as u64;
    let lines: u64 = subject.deltas.iter().map(|delta| delta.line_count()).sum();
    let (files_max, lines_max) = subject.settings.size_limits();
    for (what, found, limit) in [("files", files, files_max), ("lines", lines, lines_max)] {
        if found > limit {
            let claim = format!("the change touches {found} {what}; the policy's limit is {limit}");
            raised.push(
                Raised::new(
                    Check::Size,
                    Severity::Medium,
                    claim,
                    vec![field(format!("changesets/proposed/{}", if what == "files" { "id" } else { "hash" }))],
                )
                .act(format!("Make the change smaller: at most {limit} {what} at a time.")),
            );
        }
    }
    let unread = || subject.deltas.iter().filter(|delta| delta.unread.is_some());
    if unread().next().is_some() {
        let named = unread().map(|d| format!("{} ({})", d.path, d.unread.as_deref().unwrap_or_default()));
        let claim = format!(
            "{} changed files were compared by digest only, not line by line: {}",
            unread().count(),
            quote::list(named)
        );
        let place = vec![field("changesets")];
        raised.push(Raised::new(Check::Size, Severity::Low, claim, place).only_warn());
    }
    raised
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;

    use super::*;
    use crate::testing::Sample;

    #[test]
    fn a_changeset_that_leaves_out_a_file_is_raised() {
        let sample = Sample::new().tree("a", "1\n").tree("b", "2\n");
        let mut subject = sample.subject();
        assert!(changeset_complete(&subject).is_empty());

        subject.checkpoint.changesets.proposed.hash = Sample::new().tree("a", "1\n").subject().changeset.digest();
        let raised = changeset_complete(&subject);
        assert_eq!((raised.len(), raised[0].severity), (1, Severity::Critical));
    }

    #[test]
    fn a_changeset_that_is_not_stored_is_raised() {
        for recorded in [None, Some(Digest::of("other"))] {
            let mut subject = Sample::new().tree("a", "1\n").subject();
            subject.recorded = recorded;
            assert_eq!(changeset_complete(&subject).len(), 1);
        }
    }

    #[test]
    fn limits_count_files_and_lines_and_may_be_reached() {
        let mut subject = Sample::new().base("a", "1\n2\n").tree("a", "1\n3\n").tree("b", "x\n").subject();
        for (files, lines, expected) in [(2, 3, 0), (1, 3, 1), (2, 2, 1), (1, 1, 2)] {
            subject.settings.set_size(files, lines);
            assert_eq!(size(&subject).len(), expected, "{files} {lines}");
        }
    }

    #[test]
    fn files_that_were_not_read_are_named_and_do_not_block() {
        let mut subject = Sample::new().tree("big", "x\n").subject();
        subject.deltas[0].unread = Some("larger than 8 MiB".to_owned());
        let raised = size(&subject);
        assert!(raised[0].claim.contains("`big (larger than 8 MiB)`"), "{}", raised[0].claim);
        assert_eq!(raised[0].at_most, crate::check::Level::Warn);
    }
}
