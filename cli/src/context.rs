//! What every command works with: output, data folder, and who types.

use std::path::{Path, PathBuf};

use checkrein_shared::task_file::Surroundings;

use crate::args::Globals;
use crate::failure::Failure;
use crate::output::Output;

/// See the module.
pub(crate) struct Context {
    pub(crate) out: Output,
    /// The data folder, absolute; it need not exist.
    pub(crate) data: PathBuf,
    /// The name under which decisions are recorded.
    pub(crate) by: String,
    /// How much is logged.
    pub(crate) verbose: u8,
    /// Whether a demo tells the story: then nobody is asked, and nobody is told what to type next.
    pub(crate) is_demo: bool,
}

impl Context {
    pub(crate) fn new(globals: &Globals) -> Result<Self, Failure> {
        Ok(Self {
            out: Output::new(globals.json, globals.quiet, globals.color),
            data: data_folder(globals.data.as_deref())?,
            by: globals.by.clone().unwrap_or_else(user_name),
            verbose: globals.verbose,
            is_demo: false,
        })
    }

    /// What is around a task file.
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings { home: home(), data: self.data.clone() }
    }

    /// The same for a demo with this data folder.
    pub(crate) fn for_demo(self, data: PathBuf) -> Self {
        Self { out: self.out.asking_nothing(), data, is_demo: true, ..self }
    }

    /// How this program is called on a command line.
    pub(crate) fn program(&self) -> String {
        let running = std::env::current_exe().ok();
        let found = crate::agents::find_program("checkrein").and_then(|path| path.canonicalize().ok());
        match running {
            // A binary that was replaced while it runs has no path any more.
            Some(running) if found.as_ref() != Some(&running) && running.exists() => {
                quoted(&running.display().to_string())
            }
            _ => "checkrein".to_owned(),
        }
    }

    /// ` --data DIR` for commands that are shown to people, where they would otherwise look elsewhere.
    pub(crate) fn data_option(&self) -> String {
        match data_folder(None) {
            Ok(usual) if usual == self.data => String::new(),
            _ => format!(" --data {}", quoted(&self.data.display().to_string())),
        }
    }
}

/// A text as the shell needs it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The home folder of the user.
pub(crate) fn home() -> Option<PathBuf> {
    set("HOME")
}

fn data_folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    // The XDG rules say that a relative path in their variables is to be ignored.
    let state = || set("XDG_STATE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("checkrein"));
    let usual = || home().map(|home| home.join(".local/state/checkrein"));
    let folder = given.map(Path::to_owned).or_else(|| set("CHECKREIN_DATA")).or_else(state).or_else(usual);
    let folder = folder
        .ok_or_else(|| Failure::usage("there is no data folder: HOME is not set").hint("name one with --data DIR"))?;
    std::path::absolute(&folder).map_err(|error| Failure::caused("the data folder has no absolute path", &error))
}

/// The user's name, or the number where the system knows none.
fn user_name() -> String {
    let user = nix::unistd::Uid::current();
    match nix::unistd::User::from_uid(user) {
        Ok(Some(found)) => found.name,
        _ => format!("uid-{user}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_shell_would_read_otherwise_is_quoted() {
        assert_eq!(quoted("/tmp/a-b.c"), "/tmp/a-b.c");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("$HOME"), "'$HOME'");
        assert_eq!(quoted(""), "''");
    }
}
