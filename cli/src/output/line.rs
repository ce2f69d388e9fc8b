//! One event as lines: what happened, and below it the details.

use checkrein_shared::api::{EventView, Tone};

use super::facts::clock;
use super::{Output, shown};

/// The most lines that are shown of one detail.
const DETAIL_LINES_MAX: usize = 12;

/// The mark at the start of a line.
fn mark(tone: Tone) -> &'static str {
    match tone {
        Tone::Info => "·",
        Tone::Good => "✓",
        Tone::Bad => "✗",
        Tone::Ask => "?",
    }
}

/// The lines of an event.
pub(crate) fn event_lines(out: &Output, event: &EventView) -> Vec<String> {
    let head = format!("{} {}", mark(event.tone), shown(&event.text));
    let mut lines = vec![format!("{}  {}", out.dim(&clock(event.at)), out.toned(event.tone, &head))];
    for detail in &event.details {
        // An error can quote what a command printed.
        let quoted = detail.lines().take(DETAIL_LINES_MAX);
        lines.extend(quoted.map(|line| format!("            {}", out.dim(&shown(line)))));
    }
    lines
}
