//! Folds a chain of policy files into one resolved policy.
//!
//! The most derived file says what it says and keeps the rest. Two things it
//! can't undo: a tool's effect and mode only ever rise, and floor rules stay.

mod draft;
mod finish;
mod reviewing;
mod rules;
mod tests_section;

use super::compile::CompiledPolicy;
use super::error::{PolicyError, Problem};
use super::load::Layer;
use super::resolved::{Origin, ResolvedPolicy};

/// Folds the layers, the most derived first, and checks the result.
pub(crate) fn resolve(layers: &[Layer]) -> Result<ResolvedPolicy, PolicyError> {
    let mut report = Report { layers, problems: Vec::new() };
    let draft = draft::fold(layers, &mut report);
    let policy = finish::finish(draft, &mut report);
    let Some(policy) = policy.filter(|_| report.problems.is_empty()) else {
        return Err(PolicyError::new(report.problems));
    };
    match CompiledPolicy::compile_located(policy.clone(), layers) {
        Ok(_) => Ok(policy),
        Err(error) => Err(error),
    }
}

/// Collects problems and says in which file they are.
pub(super) struct Report<'a> {
    layers: &'a [Layer],
    problems: Vec<Problem>,
}

impl Report<'_> {
    fn add(&mut self, origin: &Origin, message: impl Into<String>) {
        self.problems.push(locate(self.layers, origin, message));
    }

    fn hinted(&mut self, origin: &Origin, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(locate(self.layers, origin, message).hinted(hint));
    }
}

/// A problem at an origin, with the file as the user named it.
pub(crate) fn locate(layers: &[Layer], origin: &Origin, message: impl Into<String>) -> Problem {
    let message = message.into();
    match layers.iter().find(|layer| layer.name == origin.file) {
        Some(layer) => layer.problem(origin, message),
        None => Problem { file: origin.file.clone(), line: origin.line, column: origin.column, message, hint: None },
    }
}
