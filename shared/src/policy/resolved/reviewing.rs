//! Resolved: who judges what, and who is asked.

use serde::{Deserialize, Serialize};

use super::{Origin, When};
use crate::digest::Digest;
use crate::policy::file::{Command, Quorum};
use crate::policy::words::{Excluded, Independence, Network, OnTimeout};
use crate::records::{EvidenceKind, ReviewKind, Trigger};
use crate::time::Span;

parts! {
    /// A rule that every result must keep, with its text.
    Constraint {
        /// Its name.
        id: String,
        /// Its version.
        version: u32,
        /// The rule.
        text: String,
        /// The digest of the text.
        hash: Digest,
        /// Where it stands.
        origin: Origin,
    }

    /// A command that a reviewer runs in a fresh copy of the checkpoint's tree.
    Verifier {
        /// The command.
        run: Command,
        /// How long it may take.
        timeout: Span,
        /// What network it sees.
        network: Network,
        /// Paths taken from the target at base.
        carry: Vec<String>,
        /// Globs of files restored from the base before it runs.
        from_base: Vec<String>,
        /// Globs of the files that it says something about.
        covers: Vec<String>,
        /// Where it stands.
        origin: Origin,
    }

    /// A judgement that is asked for.
    Review {
        /// Its name.
        name: String,
        /// Who judges.
        kind: ReviewKind,
        /// The triggers whose checkpoints it judges.
        on: Vec<Trigger>,
        /// It is asked for only where this holds; `None`: always.
        when: Option<When>,
        /// The verifiers that it runs, by name.
        verifiers: Vec<String>,
        /// Whether work waits for it.
        blocking: bool,
        /// How many reviewers judge.
        count: u32,
        /// How many of them must approve.
        quorum: Quorum,
        /// Whether one negative verdict is enough.
        veto: bool,
        /// In what its reviewers must differ.
        independent: Vec<Independence>,
        /// Kinds of evidence that every reviewer must have fetched.
        must_read: Vec<EvidenceKind>,
        /// How long it may take.
        timeout: Span,
        /// The model that judges; `None`: the settings' default.
        model: Option<String>,
        /// The program that judges, for the kind `command`.
        command: Option<Command>,
        /// The level that is asked, for the kind `human`.
        level: Option<String>,
        /// Where it stands.
        origin: Origin,
    }

    /// Who is asked, and how long.
    Level {
        /// People and groups.
        to: Vec<String>,
        /// Sinks that are told.
        notify: Vec<String>,
        /// How long they have.
        deadline: Span,
        /// Office hours in which the deadline runs; `None`: always.
        hours: Option<String>,
        /// How many people must approve.
        approvers: u32,
        /// Who may not.
        exclude: Vec<Excluded>,
        /// The level that is asked when the deadline passes; `None`: `on_timeout` happens.
        next: Option<String>,
        /// What happens when it passes and there is no next level.
        on_timeout: OnTimeout,
        /// Where it stands.
        origin: Origin,
    }
}

impl Verifier {
    /// The argument vector.
    pub fn argv(&self) -> &[String] {
        self.run.argv()
    }
}
