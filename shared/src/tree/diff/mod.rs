//! A changeset as text for reviewers and people: bounded, and nothing hides in it.
//!
//! The text is evidence, not the truth: hashes bind the changeset itself. Every
//! change is named. What is binary, secret by name, too large or folded is listed
//! with its reason, and characters that could hide or reorder code are written
//! out. Lines of content always begin with a blank, `+`, `-` or `\`, so no content
//! can imitate a heading. This module judges nothing.

mod file;
mod names;
mod text;

use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changeset::{Change, Changeset};
use super::path::RelPath;
use crate::blob::Blobs;

pub use names::is_generated;

/// How much is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text, without the list of what is not shown.
    pub total_bytes: usize,
    /// Bytes of one file's part.
    pub file_bytes: usize,
    /// The largest content that is read.
    pub content_bytes: u64,
    /// Bytes of one line.
    pub line_bytes: usize,
    /// Lines of a lock file's or generated file's part.
    pub folded_lines: usize,
    /// Paths in the list of what is not shown.
    pub listed: usize,
    /// The time after which lines are no longer matched closely; the text stays true, only longer.
    pub effort: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total_bytes: 1 << 20,
            file_bytes: 256 << 10,
            content_bytes: 4 << 20,
            line_bytes: 2000,
            folded_lines: 40,
            listed: 1000,
            effort: Duration::from_secs(20),
        }
    }
}

/// A changeset as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text: UTF-8, no control characters but line feeds and tabs.
    pub text: String,
    /// What was counted.
    pub stats: Stats,
    /// Every file whose change is not shown, or only in part.
    pub not_shown: Vec<NotShown>,
    /// Hidden characters on added lines; at most [`HIDDEN_MAX`] are listed.
    pub hidden: Vec<Hidden>,
}

/// The largest number of hidden characters that are listed.
pub const HIDDEN_MAX: usize = 200;

/// Counts over all changes, shown or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// How many files and links changed.
    pub files: u64,
    /// Lines that were added.
    pub lines_added: u64,
    /// Lines that were removed.
    pub lines_removed: u64,
    /// How many changed files have uncounted lines: binary, sealed or too large.
    pub files_uncounted: u64,
    /// Hidden characters on added lines.
    pub hidden_characters: u64,
}

/// A file whose change is not shown, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotShown {
    /// The file.
    pub path: RelPath,
    /// Why.
    pub reason: Reason,
}

/// Why a change is not shown, or only in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It holds NUL bytes.
    Binary,
    /// Its name says that it holds secrets.
    Secret,
    /// It is larger than what is read.
    TooLarge,
    /// Its content is missing from the blob store, or damaged there.
    Unavailable,
    /// It is a lock file or generated: only its beginning is shown.
    Folded,
    /// Its part is long: only its beginning is shown.
    FileLimit,
    /// At least one of its lines is long: only the beginnings of long lines are shown.
    LongLines,
    /// The whole text is long, and longer parts give way to shorter ones.
    TotalLimit,
}

impl Reason {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Binary => "binary content not shown",
            Self::Secret => "secret by its name, content not shown",
            Self::TooLarge => "too large, content not shown",
            Self::Unavailable => "content unavailable, not shown",
            Self::Folded => "lock or generated file, folded",
            Self::FileLimit => "long, content truncated",
            Self::LongLines => "long lines, content truncated",
            Self::TotalLimit => "the text as a whole is too long, content not shown",
        }
    }
}

/// A hidden character on an added line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hidden {
    /// The file.
    pub path: RelPath,
    /// The line in the new file, from 1.
    pub line: u64,
    /// The character, as `U+202E`.
    pub character: String,
}

/// One change's part of the text.
struct Piece {
    heading: String,
    body: String,
    stats: Stats,
    not_shown: Vec<Reason>,
    hidden: Vec<Hidden>,
}

/// Writes a changeset as text. A content that can't be read becomes a note, never a failure.
pub async fn render(blobs: &dyn Blobs, changeset: &Changeset, limits: &Limits) -> Rendered {
    let deadline = Instant::now() + limits.effort;
    let mut budget = Budget { limits, pieces: Vec::new(), bytes: 0, largest: BinaryHeap::new() };
    let mut stats = Stats::default();
    let mut hidden = Vec::new();
    for change in changeset.changes() {
        let mut piece = file::piece(blobs, change, limits, deadline).await;
        add(&mut stats, &piece.stats);
        let free = HIDDEN_MAX - hidden.len();
        hidden.extend(piece.hidden.drain(..).take(free));
        budget.push(piece);
    }
    let (body, not_shown) = budget.finish(changeset.changes());
    let text = head(&stats, &not_shown, limits) + &body;
    Rendered { text, stats, not_shown, hidden }
}

fn add(total: &mut Stats, part: &Stats) {
    total.files += part.files;
    total.lines_added += part.lines_added;
    total.lines_removed += part.lines_removed;
    total.files_uncounted += part.files_uncounted;
    total.hidden_characters += part.hidden_characters;
}

fn head(stats: &Stats, not_shown: &[NotShown], limits: &Limits) -> String {
    let mut text = format!(
        "# {} changed, {} lines added, {} removed; {} not counted, {} not shown in full\n",
        stats.files,
        stats.lines_added,
        stats.lines_removed,
        stats.files_uncounted,
        not_shown.len()
    );
    if stats.hidden_characters > 0 {
        text += &format!("# warning: {} hidden characters on added lines\n", stats.hidden_characters);
    }
    for NotShown { path, reason } in not_shown.iter().take(limits.listed) {
        text += &format!("# not shown in full: {path} ({})\n", reason.words());
    }
    if not_shown.len() > limits.listed {
        text += &format!("# and {} more, which the changeset names\n", not_shown.len() - limits.listed);
    }
    text
}

/// Keeps the text within its limit: the longest parts give way first, so a small change is always shown.
struct Budget<'a> {
    limits: &'a Limits,
    pieces: Vec<Piece>,
    bytes: usize,
    largest: BinaryHeap<(usize, usize)>,
}

impl Budget<'_> {
    fn push(&mut self, piece: Piece) {
        let index = self.pieces.len();
        let size = piece.heading.len() + piece.body.len();
        self.pieces.push(piece);
        self.bytes += size;
        self.largest.push((size, index));
        while self.bytes > self.limits.total_bytes
            && let Some((size, index)) = self.largest.pop()
        {
            let piece = &mut self.pieces[index];
            let had_body = !piece.body.is_empty();
            (piece.heading, piece.body) = (String::new(), String::new());
            self.bytes -= size;
            // A change that is all heading (a mode, a rename) is still named by the list.
            if had_body || piece.not_shown.is_empty() {
                piece.not_shown.insert(0, Reason::TotalLimit);
            }
        }
    }

    fn finish(self, changes: &[Change]) -> (String, Vec<NotShown>) {
        let mut text = String::with_capacity(self.bytes);
        let mut not_shown = Vec::new();
        for (piece, change) in self.pieces.into_iter().zip(changes) {
            text += &piece.heading;
            text += &piece.body;
            if let Some(reason) = piece.not_shown.first() {
                not_shown.push(NotShown { path: change.path.clone(), reason: *reason });
            }
        }
        (text, not_shown)
    }
}

#[cfg(test)]
mod tests;
