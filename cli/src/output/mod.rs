//! Everything that the program prints: plain lines, colour on a terminal, or JSON.
//!
//! Piped output is stable and has no escape sequences. A reader that went away
//! is no error: what follows is dropped, and the work goes on.

mod checkpoint;
mod diff;
mod effects;
mod escape;
mod facts;
mod line;
mod task;
mod why;

use std::io::{IsTerminal as _, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use checkrein_shared::api::Tone;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

pub(crate) use checkpoint::checkpoint_lines;
pub(crate) use diff::coloured_diff;
pub(crate) use effects::{effect_lines, effects_lines, left_behind_lines};
pub(crate) use escape::{shown, shown_lines};
pub(crate) use facts::{columns, shortened, size};
pub(crate) use line::event_lines;
pub(crate) use task::{epitaph_lines, inbox_lines, task_lines, tasks_lines};
pub(crate) use why::why_lines;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Also when piped.
    Always,
    /// Never.
    Never,
}

/// Where output goes, and in which form.
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    color: bool,
    terminal: bool,
    asks: bool,
    closed: AtomicBool,
    progress: Mutex<Option<ProgressBar>>,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, when: ColorWhen) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match when {
            ColorWhen::Auto => terminal && !plain,
            ColorWhen::Always => true,
            ColorWhen::Never => false,
        };
        let (closed, progress) = (AtomicBool::new(false), Mutex::new(None));
        Self { json, quiet, color: color && !json, terminal: terminal && !json, asks: true, closed, progress }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person sits at both ends and can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.asks && self.terminal && !self.quiet && std::io::stdin().is_terminal()
    }

    /// The same output, where nobody is asked anything.
    pub(crate) fn asking_nothing(self) -> Self {
        Self { asks: false, ..self }
    }

    /// Whether nobody reads the output any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// One line of the command's result. The text must be safe already: see [`shown`].
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        if !self.json {
            self.write(text.as_ref().as_bytes(), true);
        }
    }

    /// One line that only explains; `--quiet` leaves it out.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// The command's result, for programs.
    pub(crate) fn object<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string(value).map_err(|e| Failure::caused("can't write JSON", &e))?;
            self.write(text.as_bytes(), true);
        }
        Ok(())
    }

    /// Bytes as they are: evidence, schemas, completions.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        self.write(bytes, false);
    }

    /// The text in the colour of its tone.
    pub(crate) fn toned(&self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Info => text.to_owned(),
            Tone::Good => self.painted("32", text),
            Tone::Bad => self.painted("31", text),
            Tone::Ask => self.painted("33", text),
        }
    }

    /// The text in bold.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    /// The text, less prominent.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    /// The text with an escape sequence around it, where colour is wanted.
    pub(crate) fn painted(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Whether somebody sees what [`Output::progress`] shows.
    pub(crate) fn shows_progress(&self) -> bool {
        self.terminal && !self.quiet && !self.is_closed()
    }

    /// Shows on a terminal what goes on right now.
    pub(crate) fn progress(&self, text: &str) {
        if !self.shows_progress() {
            return;
        }
        let mut slot = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{spinner} {wide_msg} {elapsed:.dim}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(shown(text).into_owned());
    }

    /// Takes the progress line away.
    pub(crate) fn progress_done(&self) {
        let bar = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }

    fn write(&self, bytes: &[u8], line: bool) {
        if self.is_closed() {
            return;
        }
        let slot = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let print = || {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| if line { stdout.write_all(b"\n") } else { Ok(()) })?;
            stdout.flush()
        };
        let written = match slot.as_ref() {
            Some(bar) => bar.suspend(print),
            None => print(),
        };
        if written.is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Shows why the program ends without having done its work.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.progress_done();
        let text = if self.json { format!("{}\n", failure.json()) } else { failure.text() };
        // Where nobody reads it, the exit code still says it.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// A warning beside the result.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "warning: {}", shown(text));
        }
    }
}
