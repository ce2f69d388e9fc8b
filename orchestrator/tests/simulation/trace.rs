//! What happened, for people who look at one seed. The others pay nothing for it.

use std::cell::RefCell;
use std::io::Write as _;

#[derive(Debug, Default)]
pub(crate) struct Trace {
    lines: Option<RefCell<Vec<String>>>,
}

impl Trace {
    /// Keeps nothing.
    pub(crate) fn off() -> Self {
        Self { lines: None }
    }

    /// Keeps everything.
    pub(crate) fn on() -> Self {
        Self { lines: Some(RefCell::default()) }
    }

    pub(crate) fn say(&self, millis: u64, what: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let line = format!("{:>9}.{:03}  {}", millis / 1_000, millis % 1_000, what());
            lines.borrow_mut().push(line);
        }
    }

    /// The newest lines.
    pub(crate) fn print(&self, most: usize) {
        let Some(lines) = &self.lines else { return };
        let lines = lines.borrow();
        let mut out = std::io::stderr().lock();
        for line in &lines[lines.len().saturating_sub(most)..] {
            // Nobody is helped by an error about an error message.
            let _ = writeln!(out, "{line}");
        }
    }
}
