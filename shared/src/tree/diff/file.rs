//! One change as text: its heading, and the lines that differ.

use std::fmt::Write as _;
use std::time::Instant;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};

use super::super::changeset::{Change, ChangeKind};
use super::super::entry::{Content, Entry};
use super::super::path::RelPath;
use super::super::secret::is_secret_name;
use super::{HIDDEN_MAX, Hidden, Limits, Piece, Reason, Stats, names, text};
use crate::blob::Blobs;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Contents up to this size together are compared at once: a thread of its own would cost more.
const COMPARED_AT_ONCE: usize = 4 << 10;

pub(super) async fn piece(blobs: &dyn Blobs, change: &Change, limits: &Limits, deadline: Instant) -> Piece {
    let mut piece = Piece {
        heading: heading(change),
        body: String::new(),
        stats: Stats { files: 1, ..Stats::default() },
        not_shown: Vec::new(),
        hidden: Vec::new(),
    };
    let same = matches!((&change.old, &change.new), (Some(a), Some(b)) if a.content_digest() == b.content_digest());
    if same && change.kind != ChangeKind::TypeChanged {
        return piece;
    }
    let read = match content(blobs, change, change.old.as_ref(), limits).await {
        Ok(old) => content(blobs, change, change.new.as_ref(), limits).await.map(|new| (old, new)),
        Err(reason) => Err(reason),
    };
    let (old, new) = match read {
        Ok((old, new)) if text::is_binary(&old) || text::is_binary(&new) => {
            return unread(piece, Reason::Binary);
        }
        Ok(both) => both,
        Err(reason) => return unread(piece, reason),
    };
    if old.len() + new.len() <= COMPARED_AT_ONCE {
        write_lines(&mut piece, change, &old, &new, limits, deadline);
        return piece;
    }
    let (change, limits) = (change.clone(), limits.clone());
    let compared = move || {
        write_lines(&mut piece, &change, &old, &new, &limits, deadline);
        piece
    };
    tokio::task::spawn_blocking(compared).await.expect("comparing neither panics nor is aborted")
}

fn unread(mut piece: Piece, reason: Reason) -> Piece {
    piece.stats.files_uncounted = 1;
    writeln!(piece.heading, "# {}", reason.words()).expect("writing to a String can't fail");
    piece.not_shown.push(reason);
    piece
}

fn heading(change: &Change) -> String {
    let kind = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed => "renamed",
        ChangeKind::ModeChanged => "mode changed",
        ChangeKind::TypeChanged => "type changed",
    };
    let mut heading = format!("# {kind}: {}\n", change.path);
    let mut push = |line: String| {
        heading += &line;
        heading.push('\n');
    };
    if let Some(from) = &change.from {
        push(format!("# renamed from: {from}"));
    }
    for (side, entry) in [("old", &change.old), ("new", &change.new)] {
        if let Some(entry) = entry {
            push(format!("# {side}: {}", describe(entry)));
        }
    }
    heading
}

fn describe(entry: &Entry) -> String {
    match entry {
        Entry::File { digest, size, mode, .. } => format!("file, mode {mode}, {size} bytes, {digest}"),
        Entry::Symlink { target } => format!("symbolic link to {target}"),
    }
}

/// One side's bytes: none where nothing stands, and where a link points for a link.
async fn content(
    blobs: &dyn Blobs,
    change: &Change,
    entry: Option<&Entry>,
    limits: &Limits,
) -> Result<Vec<u8>, Reason> {
    let (digest, size, content) = match entry {
        None => return Ok(Vec::new()),
        Some(Entry::Symlink { target }) => return Ok(target.as_bytes().to_vec()),
        Some(Entry::File { digest, size, content, .. }) => (*digest, *size, *content),
    };
    if content == Content::Sealed || is_secret_name(change.path.name()) {
        return Err(Reason::Secret);
    }
    if content == Content::Large || size > limits.content_bytes {
        return Err(Reason::TooLarge);
    }
    blobs.get(digest, limits.content_bytes).await.map_err(|error| {
        tracing::warn!(path = %change.path, %digest, %error, "a content is left out of a diff: it can't be read");
        Reason::Unavailable
    })
}

fn write_lines(piece: &mut Piece, change: &Change, old: &[u8], new: &[u8], limits: &Limits, deadline: Instant) {
    let path = &change.path;
    let (old_lines, new_lines) = (text::lines(old), text::lines(new));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, Some(deadline));
    count(piece, path, &ops, &new_lines);
    let folded = names::is_generated(path.name());
    let mut out = Out { lines_max: if folded { limits.folded_lines } else { usize::MAX }, ..Out::new(limits) };
    for group in similar::group_diff_ops(ops, CONTEXT_LINES) {
        out.hunk(&group, &old_lines, &new_lines);
    }
    if !out.text.is_empty() {
        let name = |side: &str, entry: &Option<Entry>| match entry {
            Some(_) => format!("{side}/{path}"),
            None => "/dev/null".to_owned(),
        };
        piece.body = format!("--- {}\n+++ {}\n{}", name("a", &change.old), name("b", &change.new), out.text);
    }
    if out.left > 0 {
        let reason = if folded { Reason::Folded } else { Reason::FileLimit };
        writeln!(piece.body, "# {}: {} more lines", reason.words(), out.left).expect("writing to a String can't fail");
        piece.not_shown.push(reason);
    }
    if out.long_lines {
        writeln!(piece.body, "# {}", Reason::LongLines.words()).expect("writing to a String can't fail");
        piece.not_shown.push(Reason::LongLines);
    }
}

/// Counts everything, however little of it is shown later.
fn count(piece: &mut Piece, path: &RelPath, ops: &[DiffOp], new_lines: &[&[u8]]) {
    for op in ops.iter().filter(|op| op.tag() != DiffTag::Equal) {
        piece.stats.lines_removed += op.old_range().len() as u64;
        piece.stats.lines_added += op.new_range().len() as u64;
        for index in op.new_range() {
            for c in text::hidden(new_lines[index]) {
                piece.stats.hidden_characters += 1;
                if piece.hidden.len() < HIDDEN_MAX {
                    let character = format!("U+{:04X}", u32::from(c));
                    piece.hidden.push(Hidden { path: path.clone(), line: index as u64 + 1, character });
                }
            }
        }
    }
}

/// The lines written so far, and how many no longer fit.
struct Out<'a> {
    limits: &'a Limits,
    lines_max: usize,
    text: String,
    lines: usize,
    left: usize,
    long_lines: bool,
}

impl<'a> Out<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { limits, lines_max: usize::MAX, text: String::new(), lines: 0, left: 0, long_lines: false }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= self.limits.file_bytes || self.lines >= self.lines_max
    }

    fn hunk(&mut self, group: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        if !self.is_full() {
            let old_range = first.old_range().start..last.old_range().end;
            let new_range = first.new_range().start..last.new_range().end;
            let line = format!("@@ -{} +{} @@\n", place(&old_range), place(&new_range));
            self.text += &line;
        }
        for op in group {
            if op.tag() == DiffTag::Equal {
                self.lines(' ', &old[op.old_range()]);
            } else {
                self.lines('-', &old[op.old_range()]);
                self.lines('+', &new[op.new_range()]);
            }
        }
    }

    fn lines(&mut self, sign: char, lines: &[&[u8]]) {
        for line in lines {
            if self.is_full() {
                self.left += 1;
                continue;
            }
            self.lines += 1;
            let (line, ended) = line.strip_suffix(b"\n").map_or((*line, false), |line| (line, true));
            let shown = text::show(line, self.limits.line_bytes);
            self.long_lines |= shown.truncated;
            self.text.push(sign);
            self.text += &shown.text;
            self.text += if ended { "\n" } else { "\n\\ no line feed at the end\n" };
        }
    }
}

/// A hunk's place as unified diffs write it: the first line from 1, and the count unless it is one.
fn place(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        count => format!("{},{count}", range.start + 1),
    }
}
