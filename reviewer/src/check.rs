//! What a built-in check raises. Their names, and how a policy switches them, are
//! the policy's words; the checks themselves are in [`crate::checks`].

pub(crate) use checkrein_shared::policy::{CheckMode as Level, CheckName as Check};
use checkrein_shared::records::{Severity, SourceRef};

/// The check with this name.
pub(crate) fn parse(name: &str) -> Option<Check> {
    Check::ALL.iter().copied().find(|check| check.as_str() == name)
}

/// What a check raises, before its refs are checked and before it becomes a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) check: Check,
    pub(crate) severity: Severity,
    /// What is wrong, for people. Untrusted text in it is escaped already.
    pub(crate) claim: String,
    /// Where it can be seen. The first one is its place: the same place in a later round is the same finding.
    pub(crate) refs: Vec<SourceRef>,
    /// What has to be done, as a sentence that an agent can act on.
    pub(crate) action: String,
    /// The most that the policy's level may make of it.
    pub(crate) at_most: Level,
}

impl Raised {
    pub(crate) fn new(check: Check, severity: Severity, claim: impl Into<String>, refs: Vec<SourceRef>) -> Self {
        Self { check, severity, claim: claim.into(), refs, action: String::new(), at_most: Level::Block }
    }

    /// Says what has to be done.
    pub(crate) fn act(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// Keeps it from ever blocking: a hint, not a fault.
    pub(crate) fn only_warn(mut self) -> Self {
        self.at_most = Level::Warn;
        self
    }
}

/// A place in the checkpoint record.
pub(crate) fn field(name: impl Into<String>) -> SourceRef {
    SourceRef::Checkpoint(name.into())
}

/// A file as a whole.
pub(crate) fn whole_file(path: impl ToString) -> SourceRef {
    SourceRef::File { path: path.to_string(), line: None, quote: None }
}

/// A line of a file.
pub(crate) fn line_of(path: impl ToString, line: u64) -> SourceRef {
    SourceRef::File { path: path.to_string(), line: Some(line), quote: None }
}
