//! The guards: conditions on which the invariants rest, by name.
//!
//! Without the feature `mutations` a guard is its condition and nothing else. With it, which is for this crate's own
//! tests, one guard may be switched off in a thread; then its condition counts as holding. The simulation has to
//! notice each of them: `docs/assurance.md` names a seed for every one.

/// A condition that has a name: `guard!(Name, condition)`.
#[cfg(not(feature = "mutations"))]
macro_rules! guard {
    ($name:ident, $holds:expr) => {
        $crate::guards::holds($holds)
    };
}

/// A condition that has a name and may be switched off.
#[cfg(feature = "mutations")]
macro_rules! guard {
    ($name:ident, $holds:expr) => {
        // The condition comes first, so that whatever it does happens in any case.
        ($holds) | $crate::guards::is_off($crate::guards::Guard::$name)
    };
}

pub(crate) use guard;

/// The condition.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn holds(condition: bool) -> bool {
    condition
}

#[cfg(feature = "mutations")]
pub(crate) use switch::is_off;
#[cfg(feature = "mutations")]
pub use switch::{Guard, switch_off};

#[cfg(feature = "mutations")]
mod switch {
    use std::cell::Cell;

    macro_rules! guards {
        ($($name:ident,)*) => {
            /// Every guard.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            #[expect(missing_docs, reason = "docs/assurance.md says of each what it holds")]
            pub enum Guard { $($name,)* }

            impl Guard {
                /// All of them.
                pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            }
        };
    }

    guards! {
        GrantOfThisAttempt,
        GrantStillOpen,
        GrantChangesetEqual,
        GrantBaseIsTarget,
        GrantWasRedeemed,
        BegunIsFinished,
        UnusedGrantsDie,
        VerdictIsCurrent,
        VerdictOfAskedKind,
        VerdictOnlyOnce,
        ApprovalNamesHash,
        ApprovalInTime,
        ApproverMayApprove,
        ApproversAreEnough,
        ApprovedTargetUnchanged,
        ApprovedSubjectUnchanged,
        PausedSubjectUnchanged,
        StaleStaysStale,
        VetoStands,
        FixIsShown,
        QuorumIsReached,
        NoVetoInRound,
        InheritanceHolds,
        RevokedIsNotInherited,
        CheckpointFollowsHead,
        CheckpointOfThisAttempt,
        ReportOfThisAttempt,
        LeaseOfThisEpoch,
        UnknownEffectWaits,
        DoneEffectIsNotRepeated,
        EffectOfThisAttempt,
        ProbeIsNotTooEarly,
        SignerIsReviewer,
        CheckpointIsWorkers,
        BlobsBeforeRecords,
        BlobsBeforeCommit,
        VersionIsNewest,
        NothingAcknowledgedLost,
        MarkedOnceTaken,
    }

    thread_local! {
        static OFF: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    /// Switches one guard off in this thread, and all others on.
    pub fn switch_off(guard: Option<Guard>) {
        OFF.set(guard);
    }

    /// Whether a guard is switched off in this thread.
    pub(crate) fn is_off(guard: Guard) -> bool {
        OFF.get() == Some(guard)
    }
}
