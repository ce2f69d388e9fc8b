//! One event as lines: what happened, and below it the details.

use checkrein_shared::api::{EventView, Tone};

use super::facts::clock;
use super::{Output, shown};

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
    lines.extend(event.details.iter().map(|detail| format!("            {}", out.dim(&shown(detail)))));
    lines
}
