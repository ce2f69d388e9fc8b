//! Time zones and the days in them, for office hours.
//!
//! The zones are those that are built into the program, so that a text means
//! the same on every machine. No record holds a local time.

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::Timestamp;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone(TimeZone);

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day(Date);

impl Zone {
    /// The zone of this name, such as `Europe/Zurich` or `UTC`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TimeZoneDatabase::bundled().get(name).ok().map(Self)
    }

    /// The day that it is here at `time`.
    pub(crate) fn day_of(&self, time: Timestamp) -> Option<Day> {
        let instant = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?;
        Some(Day(self.0.to_datetime(instant).date()))
    }

    /// When it is this full hour here; hour 24 is the next midnight. An hour that the change of the clock skips is the
    /// one after; of an hour that comes twice it is the first.
    pub(crate) fn hour_of(&self, day: Day, hour: i8) -> Option<Timestamp> {
        let (day, hour) = if hour == 24 { (day.next()?, 0) } else { (day, hour) };
        let instant = self.0.to_timestamp(day.0.at(hour, 0, 0, 0)).ok()?;
        Some(Timestamp::from_millis(instant.as_millisecond()))
    }
}

impl Day {
    /// The day after; `None` at the end of the calendar.
    pub(crate) fn next(self) -> Option<Self> {
        self.0.tomorrow().ok().map(Self)
    }

    /// The day of the week, 0 for Monday.
    pub(crate) fn weekday(self) -> i8 {
        self.0.weekday().to_monday_zero_offset()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_follow_the_change_of_the_clock() {
        let zone = Zone::named("Europe/Zurich").unwrap();
        let hour = |day: &str, hour| {
            let noon = format!("{day}T12:00:00.000Z").parse().unwrap();
            zone.hour_of(zone.day_of(noon).unwrap(), hour).unwrap().to_string()
        };
        assert_eq!(hour("2026-03-28", 8), "2026-03-28T07:00:00.000Z");
        assert_eq!(hour("2026-03-29", 8), "2026-03-29T06:00:00.000Z");
        assert_eq!(hour("2026-03-29", 2), "2026-03-29T01:00:00.000Z");
        assert_eq!(hour("2026-10-25", 2), "2026-10-25T00:00:00.000Z");
        assert_eq!(hour("2026-10-25", 24), "2026-10-25T23:00:00.000Z");
        assert!(Zone::named("Europe/Zuerich").is_none());
    }
}
