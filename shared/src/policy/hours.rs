//! Office hours such as `Mon-Fri 08-18 Europe/Zurich`: the hours in which a
//! person's deadline runs.
//!
//! Holidays are not known.

use std::str::FromStr;

use super::resolved::Level;
use crate::time::zone::{Day, Zone};
use crate::time::{Span, Timestamp};

/// Days of the week as they are written.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How far ahead a deadline is looked for, in days; it is cut there.
const DAYS_AHEAD_MAX: usize = 3_660;

/// Office hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours {
    /// The first day, 0 for Monday.
    first_day: i8,
    /// The last day, not before the first.
    last_day: i8,
    /// The first hour.
    from: i8,
    /// The hour at which they end; 24 for midnight.
    until: i8,
    zone: Zone,
}

/// Text that is no office hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHours {
    /// It is written otherwise.
    #[error("`{0}` is not office hours: write days, hours and a time zone, such as `Mon-Fri 08-18 Europe/Zurich`")]
    Form(String),
    /// There is no such time zone.
    #[error("there is no time zone `{0}`: write a name such as `Europe/Zurich` or `UTC`")]
    Zone(String),
}

impl FromStr for Hours {
    type Err = InvalidHours;

    fn from_str(text: &str) -> Result<Self, InvalidHours> {
        let form = || InvalidHours::Form(text.to_owned());
        let words: Vec<&str> = text.split(' ').collect();
        let [days, hours, zone] = words.as_slice() else { return Err(form()) };
        let (first, last) = days.split_once('-').unwrap_or((days, days));
        let (first_day, last_day) = (day(first).ok_or_else(form)?, day(last).ok_or_else(form)?);
        let (from, until) = hours.split_once('-').ok_or_else(form)?;
        let (from, until) = (hour(from).ok_or_else(form)?, hour(until).ok_or_else(form)?);
        if first_day > last_day || from >= until || until > 24 {
            return Err(form());
        }
        let zone = Zone::named(zone).ok_or_else(|| InvalidHours::Zone((*zone).to_owned()))?;
        Ok(Self { first_day, last_day, from, until, zone })
    }
}

fn day(name: &str) -> Option<i8> {
    DAYS.iter().position(|day| *day == name).and_then(|day| i8::try_from(day).ok())
}

fn hour(digits: &str) -> Option<i8> {
    let plain = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

impl Hours {
    /// When `span` of office time has passed, counted from `start`.
    pub fn after(&self, start: Timestamp, span: Span) -> Timestamp {
        let mut left = span.as_millis();
        let mut last = start;
        let mut day = self.zone.day_of(start);
        for _ in 0..DAYS_AHEAD_MAX {
            let Some(today) = day else { break };
            if let Some((opens, closes)) = self.window(today) {
                let begins = opens.max(start);
                let open = u64::try_from(closes.since(begins).as_millis()).unwrap_or(u64::MAX);
                if left <= open {
                    return begins.plus(Span::from_millis(left).to_duration());
                }
                left -= open;
                last = last.max(closes);
            }
            day = today.next();
        }
        last
    }

    /// When the office opens and closes on a day, if it does.
    fn window(&self, day: Day) -> Option<(Timestamp, Timestamp)> {
        if !(self.first_day..=self.last_day).contains(&day.weekday()) {
            return None;
        }
        Some((self.zone.hour_of(day, self.from)?, self.zone.hour_of(day, self.until)?))
    }
}

impl Level {
    /// When someone who is asked at `asked` must have answered: the deadline, within office hours where there are any.
    pub fn due(&self, asked: Timestamp) -> Timestamp {
        match self.hours.as_deref().map(str::parse::<Hours>) {
            Some(Ok(hours)) => hours.after(asked, self.deadline),
            // A policy whose hours do not parse does not compile.
            Some(Err(_)) | None => asked.plus(self.deadline.to_duration()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hours: &str, start: &str, span: &str, due: &str) {
        let hours: Hours = hours.parse().unwrap();
        let start: Timestamp = start.parse().unwrap();
        assert_eq!(hours.after(start, span.parse().unwrap()).to_string(), due);
    }

    #[test]
    fn a_deadline_runs_in_office_hours_only() {
        let office = "Mon-Fri 08-18 Europe/Zurich";
        // A Monday in summer: two hours ahead of UTC.
        check(office, "2026-07-27T08:00:00.000Z", "2h", "2026-07-27T10:00:00.000Z");
        check(office, "2026-07-27T14:00:00.000Z", "8h", "2026-07-28T12:00:00.000Z");
        check(office, "2026-07-27T03:00:00.000Z", "1h", "2026-07-27T07:00:00.000Z");
        // Friday evening to Monday.
        check(office, "2026-07-31T15:30:00.000Z", "1h", "2026-08-03T06:30:00.000Z");
        check(office, "2026-08-01T10:00:00.000Z", "30m", "2026-08-03T06:30:00.000Z");
        check(office, "2026-07-27T08:00:00.000Z", "100h", "2026-08-10T08:00:00.000Z");
        check("Sun 00-24 UTC", "2026-07-27T08:00:00.000Z", "1h", "2026-08-02T01:00:00.000Z");
    }

    #[test]
    fn the_change_of_the_clock_does_not_lengthen_a_day() {
        // The clock goes back on Sunday 2026-10-25; Monday opens an hour later in UTC.
        check("Mon-Fri 08-18 Europe/Zurich", "2026-10-23T15:00:00.000Z", "2h", "2026-10-26T08:00:00.000Z");
    }

    #[test]
    fn deadlines_beyond_reason_are_cut() {
        let hours: Hours = "Mon-Fri 08-18 UTC".parse().unwrap();
        let start: Timestamp = "2026-07-27T08:00:00.000Z".parse().unwrap();
        let due = hours.after(start, Span::from_millis(u64::MAX));
        assert!(due > start && due < "2037-01-01T00:00:00.000Z".parse().unwrap());
    }

    #[test]
    fn odd_office_hours_are_refused() {
        for bad in [
            "",
            "Mon-Fri 8-18 Europe/Zurich",
            "Mon-Fri 18-08 Europe/Zurich",
            "Fri-Mon 08-18 UTC",
            "Mon-Fri 08-25 UTC",
            "mon-fri 08-18 UTC",
            "Mon-Fri 08-18",
            "Mon-Fri  08-18 UTC",
            "Mon-Fri 08:00-18:00 UTC",
            "Mon-Fri 08-18 UTC now",
        ] {
            assert!(matches!(bad.parse::<Hours>(), Err(InvalidHours::Form(_))), "{bad}");
        }
        let error = "Mon-Fri 08-18 Europe/Zuerich".parse::<Hours>().unwrap_err();
        assert_eq!(error, InvalidHours::Zone("Europe/Zuerich".to_owned()));
    }
}
