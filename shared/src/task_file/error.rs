//! What is wrong with a task file, and where.

use std::fmt;

/// One problem: file, line, column, what is wrong and what to do. Policies have the same.
pub use crate::policy::Problem;
use crate::policy::yaml::Place;

/// Why a task file was refused: at least one [`Problem`], in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TaskFileError {
    problems: Vec<Problem>,
}

impl TaskFileError {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "an error needs a problem");
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Self { problems }
    }

    /// What is wrong, by line.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for TaskFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// Collects problems of one file.
pub(super) struct Problems<'a> {
    file: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self { file, found: Vec::new() }
    }

    /// Notes a problem.
    pub(super) fn add(&mut self, at: Place, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(Problem {
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            message: message.into(),
            hint: Some(hint.into()),
        });
    }

    /// Gives `value` back only where no problem was found.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, TaskFileError> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            _ => Err(TaskFileError::new(self.found)),
        }
    }
}
