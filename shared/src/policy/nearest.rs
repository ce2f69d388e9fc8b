//! Guesses which known name a misspelt one was meant to be.
//!
//! It only words hints. Nothing is ever corrected silently.

/// The name in `known` that is closest to `name`, if one is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A hint that names the closest of `known`, or all of them where there are few.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    const LISTED_MAX: usize = 24;
    if let Some(meant) = nearest(name, known.clone()) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let all: Vec<&str> = known.into_iter().collect();
    (!all.is_empty() && all.len() <= LISTED_MAX).then(|| format!("known: {}", all.join(", ")))
}

/// The edits between two words: insert, delete, replace, or swap two neighbours.
fn distance(a: &str, b: &str) -> usize {
    // Names are short; a long one is no near miss of anything and must not cost quadratic time.
    const CHARS_MAX: usize = 64;
    let a: Vec<char> = a.chars().take(CHARS_MAX).collect();
    let b: Vec<char> = b.chars().take(CHARS_MAX).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let known = ["on_timeout", "deadline", "hours"];
        assert_eq!(nearest("on_tiemout", known), Some("on_timeout"));
        assert_eq!(nearest("hour", known), Some("hours"));
        assert_eq!(nearest("completely", known), None);
        assert_eq!(hint("zzz", known).unwrap(), "known: on_timeout, deadline, hours");
    }
}
