//! Checks of a resolved policy that need more than one place of it: names that
//! must exist, numbers that must fit together, patterns that must compile.
//!
//! They run when a file is loaded and again when a pinned policy is read back.
//! What is only unwise is a warning: see [`super::lint`].

mod names;
mod patterns;
mod reviewing;
mod rules;

use super::resolved::{Origin, ResolvedPolicy};

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) origin: Origin,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Collects faults.
pub(super) struct Faults<'a> {
    policy: &'a ResolvedPolicy,
    found: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, origin: &Origin, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.found.push(Fault { origin: origin.clone(), message: message.into(), hint: hint.into() });
    }

    /// Where the policy as a whole stands.
    fn top(&self) -> Origin {
        let file = self.policy.sources.first().map_or_else(|| self.policy.name.clone(), |source| source.file.clone());
        Origin { file, line: 1, column: 1 }
    }
}

/// Everything that is wrong with a policy, besides its expressions.
pub(super) fn check(policy: &ResolvedPolicy) -> Vec<Fault> {
    let mut faults = Faults { policy, found: Vec::new() };
    names::check(&mut faults);
    patterns::check(&mut faults);
    reviewing::check(&mut faults);
    rules::check(&mut faults);
    faults.found
}
