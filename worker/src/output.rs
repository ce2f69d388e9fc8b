//! The kept output of a command, ready to be redacted.
//!
//! Where the middle of a large output was thrown away, a secret may have been
//! cut in two, and neither half would be recognised; so the broken lines on
//! both sides of the gap go too, and a line says what is missing.

use checkrein_shared::process::Captured;

/// How far from a gap a line's end is looked for.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The bytes to keep, and how many of the output are not among them.
pub(crate) fn close_gap(bytes: Vec<u8>, captured: &Captured) -> (Vec<u8>, u64) {
    let gap = captured.gap_at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at <= bytes.len());
    let Some(at) = gap else { return (bytes, captured.bytes_dropped) };
    let (before, after) = bytes.split_at(at);
    let head = &before[..line_start(before)];
    let tail = &after[line_end(after)..];
    let dropped = captured.bytes_dropped + (bytes.len() - head.len() - tail.len()) as u64;
    let note = format!("[{dropped} bytes of output are left out here]\n");
    ([head, note.as_bytes(), tail].concat(), dropped)
}

/// Where the last, broken line begins; a very long one is cut by force.
fn line_start(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(LINE_BYTES_MAX);
    bytes[from..].iter().rposition(|b| *b == b'\n').map_or(from, |at| from + at + 1)
}

/// Behind the first, broken line.
fn line_end(bytes: &[u8]) -> usize {
    let to = bytes.len().min(LINE_BYTES_MAX);
    bytes[..to].iter().position(|b| *b == b'\n').map_or(to, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(bytes_dropped: u64, gap_at: Option<u64>) -> Captured {
        let text = serde_json::json!({
            "bytes_kept": 0, "bytes_dropped": bytes_dropped, "gap_at": gap_at, "still_open": false, "write_error": null
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn no_half_of_a_secret_stands_beside_a_gap() {
        let bytes = b"first\nkey=hunter2hunter2-end\nlast\n".to_vec();
        let (kept, dropped) = close_gap(bytes, &captured(1_000, Some(15)));
        let text = String::from_utf8(kept).unwrap();
        assert_eq!(text, "first\n[1023 bytes of output are left out here]\nlast\n");
        assert_eq!(dropped, 1_023);
    }

    #[test]
    fn output_without_a_gap_stays_as_it_is() {
        let bytes = b"\xff\x00\x1b[0m no newline".to_vec();
        assert_eq!(close_gap(bytes.clone(), &captured(0, None)), (bytes, 0));
    }

    #[test]
    fn output_without_line_ends_is_cut_by_force() {
        let (kept, _) = close_gap(vec![b'x'; 100_000], &captured(9, Some(50_000)));
        assert!(kept.len() > 60_000 && kept.len() < 70_000);
        assert_eq!(close_gap(Vec::new(), &captured(9, Some(0))).1, 9);
    }
}
