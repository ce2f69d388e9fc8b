//! What merges by name, key by key: triggers, verifiers, reviews and levels.

use super::Report;
use super::draft::{key, replace};
use crate::policy::file::{LevelFile, ReviewFile, TriggerFile, VerifierFile};
use crate::policy::load::Layer;
use crate::policy::resolved::Origin;
use crate::policy::yaml::Segment;

/// Something that several files may have said something about.
pub(super) struct Named<T> {
    pub(super) written: T,
    /// The most derived mention.
    pub(super) origin: Origin,
    /// Where its condition stands, if it has one.
    pub(super) when: Option<Origin>,
}

impl<T: Default> Default for Named<T> {
    fn default() -> Self {
        Self { written: T::default(), origin: Origin { file: String::new(), line: 0, column: 0 }, when: None }
    }
}

pub(super) fn merge_trigger(known: &mut Named<TriggerFile>, said: &TriggerFile, origin: Origin, when: Origin) {
    known.origin = origin;
    if said.when.is_some() {
        known.when = Some(when);
    }
    replace(&mut known.written.on, &said.on);
    replace(&mut known.written.gate, &said.gate);
    replace(&mut known.written.when, &said.when);
    replace(&mut known.written.at, &said.at);
}

pub(super) fn merge_verifier(known: &mut Named<VerifierFile>, said: &VerifierFile, origin: Origin) {
    known.origin = origin;
    replace(&mut known.written.run, &said.run);
    replace(&mut known.written.timeout, &said.timeout);
    replace(&mut known.written.network, &said.network);
    replace(&mut known.written.carry, &said.carry);
    replace(&mut known.written.from_base, &said.from_base);
    replace(&mut known.written.covers, &said.covers);
}

pub(super) fn merge_level(known: &mut Named<LevelFile>, said: &LevelFile, origin: Origin) {
    known.origin = origin;
    replace(&mut known.written.to, &said.to);
    replace(&mut known.written.notify, &said.notify);
    replace(&mut known.written.deadline, &said.deadline);
    replace(&mut known.written.hours, &said.hours);
    replace(&mut known.written.approvers, &said.approvers);
    replace(&mut known.written.exclude, &said.exclude);
    replace(&mut known.written.next, &said.next);
    replace(&mut known.written.on_timeout, &said.on_timeout);
}

pub(super) fn merge_review(
    reviews: &mut Vec<Named<ReviewFile>>,
    said: &ReviewFile,
    layer: &Layer,
    index: usize,
    report: &mut Report<'_>,
) {
    let path = [key("reviews"), Segment::Index(index), key("when")];
    let origin = layer.origin(&path[..2]);
    let when = said.when.is_some().then(|| layer.origin(&path));
    let Some(known) = reviews.iter_mut().find(|known| known.written.name == said.name) else {
        reviews.push(Named { written: said.clone(), origin, when });
        return;
    };
    if known.origin.file == layer.name {
        let message = format!("there are two reviews `{}`, the first in line {}", said.name, known.origin.line);
        report.add(&origin, message);
        return;
    }
    known.origin = origin;
    if when.is_some() {
        known.when = when;
    }
    let written = &mut known.written;
    if said.kind.is_some() && said.kind != written.kind {
        // Another kind of review is another review: what was said for the old kind has no meaning for it.
        written.verifiers = None;
        written.model = None;
        written.command = None;
        written.level = None;
    }
    replace(&mut written.kind, &said.kind);
    replace(&mut written.on, &said.on);
    replace(&mut written.when, &said.when);
    replace(&mut written.verifiers, &said.verifiers);
    replace(&mut written.blocking, &said.blocking);
    replace(&mut written.count, &said.count);
    replace(&mut written.quorum, &said.quorum);
    replace(&mut written.veto, &said.veto);
    replace(&mut written.independent, &said.independent);
    replace(&mut written.must_read, &said.must_read);
    replace(&mut written.timeout, &said.timeout);
    replace(&mut written.model, &said.model);
    replace(&mut written.command, &said.command);
    replace(&mut written.level, &said.level);
}
