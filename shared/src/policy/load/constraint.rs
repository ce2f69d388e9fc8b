//! Finds the text of a constraint: in the policy itself or in a file beside it.

use std::path::{Component, Path};

use super::layer::Layer;
use super::source::read;
use crate::policy::file::ConstraintFile;

/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1024;

impl Layer {
    /// The text of a constraint; an error says what is wrong.
    pub(crate) fn constraint_text(&self, written: &ConstraintFile) -> Result<String, String> {
        let id = &written.id;
        let text = match (&written.text, &written.file) {
            (Some(text), None) => text.clone(),
            (None, Some(file)) => self.beside(id, file)?,
            (Some(_), Some(_)) => return Err(format!("constraint `{id}` has both `text` and `file`")),
            (None, None) => return Err(format!("constraint `{id}` has neither `text` nor `file`")),
        };
        if text.trim().is_empty() {
            return Err(format!("constraint `{id}` is empty"));
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("constraint `{id}` is longer than {} KiB", TEXT_BYTES_MAX / 1024));
        }
        Ok(text)
    }

    fn beside(&self, id: &str, file: &str) -> Result<String, String> {
        let Some(folder) = &self.folder else {
            return Err(format!("constraint `{id}` names a file, but this policy is none"));
        };
        let path = Path::new(file);
        if file.is_empty() || !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!("constraint `{id}`: `{file}` must be below the policy's folder"));
        }
        let bytes = read(&folder.join(path), TEXT_BYTES_MAX).map_err(|e| format!("constraint `{id}`: `{file}` {e}"))?;
        String::from_utf8(bytes).map_err(|_| format!("constraint `{id}`: `{file}` is not UTF-8 text"))
    }
}
