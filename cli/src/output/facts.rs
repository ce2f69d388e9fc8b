//! Small things that several pages show: times, ids in columns, shortened hashes.

use std::time::Duration;

use checkrein_shared::time::Timestamp;

/// How long ago `then` was.
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    format!("{} ago", length(now.since(then)))
}

/// How much time is left until `then`.
pub(crate) fn left(now: Timestamp, then: Timestamp) -> String {
    if then > now { format!("{} left", length(then.since(now))) } else { "overdue".to_owned() }
}

fn length(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// The clock time of a moment, in UTC.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}

/// A digest's first twelve digits with its prefix; other values whole.
pub(crate) fn shortened(value: &str) -> String {
    match value.strip_prefix("sha256:").and_then(|hex| hex.get(..12)) {
        Some(hex) => format!("sha256:{hex}"),
        None => value.to_owned(),
    }
}

/// Rows in columns, two spaces apart; the last column is not padded. Colour comes later: it would count as width.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < N {
                let padding = widths[column] - cell.chars().count() + 2;
                line.extend(std::iter::repeat_n(' ', padding));
            }
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    let mut unit = 1u64 << 10;
    if bytes < unit {
        return format!("{bytes} B");
    }
    for name in ["KiB", "MiB", "GiB"] {
        if bytes < unit << 10 {
            // Rounded down, so that nothing looks larger than it is.
            return format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
        }
        unit <<= 10;
    }
    format!("{}.{} TiB", bytes / unit, bytes % unit / (unit / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".into(), "long one".into(), "x".into()], ["bbb".into(), "é".into(), String::new()]];
        assert_eq!(columns(&rows), ["a    long one  x", "bbb  é"]);
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        assert_eq!(ago(at(100), at(40)), "60 s ago");
        assert_eq!(ago(at(3_600), at(0)), "60 min ago");
        assert_eq!(left(at(0), at(86_400)), "24 h left");
        assert_eq!(left(at(5), at(5)), "overdue");
        assert_eq!(clock(at(3_661)), "01:01:01");
        assert_eq!(shortened("sha256:0123456789abcdef"), "sha256:0123456789ab");
    }
}
