//! Why a command could not be carried out: what, where, what to do, and the exit code.
//!
//! Errors of the libraries become a [`Failure`] at the place that knows the
//! advice. It is shown once, by `main`.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io::ErrorKind;

use checkrein_shared::api;
use checkrein_shared::causes::with_causes;
use checkrein_shared::policy::PolicyError;
use checkrein_shared::task_file::TaskFileError;
use serde_json::json;

use crate::exit::Exit;
use crate::output::shown;

/// What `main` shows and returns.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    problems: Vec<Problem>,
}

#[derive(Debug, Clone)]
struct Problem {
    what: String,
    at: Option<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, problems: vec![Problem { what: what.into(), at: None, hint: None }] }
    }

    /// Something on the command line, or in a file that it names, makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Something outside did not work.
    pub(crate) fn unable(what: impl Into<String>) -> Self {
        Self::new(Exit::Unable, what)
    }

    /// `doing` did not work because of `cause` and what caused that.
    pub(crate) fn caused(doing: impl Display, cause: &(dyn StdError + 'static)) -> Self {
        Self::unable(format!("{doing}: {}", with_causes(cause)))
    }

    /// What was typed, or a file that it names, is to blame.
    pub(crate) fn into_usage(mut self) -> Self {
        self.exit = Exit::Usage;
        self
    }

    /// Where it is.
    pub(crate) fn at(mut self, place: impl Display) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.at = Some(place.to_string());
        }
        self
    }

    /// What to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// What to do about it, where that is known.
    pub(crate) fn maybe_hint(self, hint: Option<&str>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// What to do about it, where nothing is said yet.
    pub(crate) fn or_hint(self, hint: impl Into<String>) -> Self {
        let silent = self.problems.last().is_some_and(|problem| problem.hint.is_none());
        if silent { self.hint(hint) } else { self }
    }

    /// What is wrong, in a line.
    pub(crate) fn what(&self) -> String {
        self.problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// The text for people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            text.push_str(&format!("error: {}\n", shown(&problem.what)));
            text.extend(problem.at.as_ref().map(|at| format!("  at: {}\n", shown(at))));
            text.extend(problem.hint.as_ref().map(|hint| format!("  try: {}\n", shown(hint))));
        }
        text
    }

    /// The object for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let problems: Vec<_> =
            self.problems.iter().map(|p| json!({ "what": p.what, "at": p.at, "try": p.hint })).collect();
        json!({ "exit": self.exit.code(), "errors": problems })
    }
}

/// What to do where a folder or a file of the data folder can't be used; `None` where the cause says nothing about it.
pub(crate) fn file_hint(cause: &std::io::Error) -> Option<&'static str> {
    match cause.kind() {
        ErrorKind::PermissionDenied => Some(
            "run it as the owner of the data folder, see that the owner may write there, or use another --data DIR",
        ),
        ErrorKind::ReadOnlyFilesystem => Some(
            "have the file system mounted for writing, or copy the data folder elsewhere and name it with --data DIR",
        ),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::AlreadyExists => {
            Some("something else lies at this place: move it away, or use another --data DIR")
        }
        _ => None,
    }
}

impl From<api::Error> for Failure {
    fn from(error: api::Error) -> Self {
        let exit = match &error {
            api::Error::NotFound(_) | api::Error::Invalid(_) | api::Error::Conflict(_) => Exit::Usage,
            api::Error::Integrity(_) => Exit::Integrity,
            api::Error::Unavailable(_) => Exit::Unable,
        };
        let failure = Self::new(exit, error.to_string());
        match error {
            api::Error::NotFound(_) => failure.hint("`checkrein tasks` lists what there is"),
            api::Error::Conflict(_) => failure.hint("`checkrein show TASK` says in which state it is"),
            api::Error::Integrity(_) => {
                failure.hint("nothing was changed; keep the data folder as it is and look at `checkrein doctor`")
            }
            api::Error::Invalid(_) | api::Error::Unavailable(_) => failure,
        }
    }
}

impl From<TaskFileError> for Failure {
    fn from(error: TaskFileError) -> Self {
        Self::from_problems(error.problems())
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        Self::from_problems(error.problems())
    }
}

impl Failure {
    fn from_problems(problems: &[checkrein_shared::policy::Problem]) -> Self {
        let problems = problems.iter().map(|problem| Problem {
            what: problem.message.clone(),
            at: Some(match problem.line {
                0 => problem.file.clone(),
                line => format!("{}:{line}:{}", problem.file, problem.column),
            }),
            hint: problem.hint.clone(),
        });
        Self { exit: Exit::Usage, problems: problems.collect() }
    }
}
