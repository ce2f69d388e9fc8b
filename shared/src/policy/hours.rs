//! Office hours such as `Mon-Fri 08-18 Europe/Zurich`: the hours in which a
//! person's deadline runs.

use std::str::FromStr;

/// Days of the week as they are written, from Monday.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Office hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours {
    /// The first day, 0 for Monday.
    first_day: u8,
    /// The last day, not before the first.
    last_day: u8,
    /// The first hour.
    from: u8,
    /// The hour at which they end.
    until: u8,
    /// The time zone.
    zone: String,
}

/// Text that is no office hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not office hours: write days, hours and a time zone, such as `Mon-Fri 08-18 Europe/Zurich`")]
pub struct InvalidHours(pub String);

impl FromStr for Hours {
    type Err = InvalidHours;

    fn from_str(text: &str) -> Result<Self, InvalidHours> {
        parse(text).ok_or_else(|| InvalidHours(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Hours> {
    let mut words = text.split(' ');
    let (days, hours, zone) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let day = |name: &str| DAYS.iter().position(|day| *day == name).and_then(|day| u8::try_from(day).ok());
    let (first, last) = days.split_once('-').unwrap_or((days, days));
    let (first_day, last_day) = (day(first)?, day(last)?);
    let (from, until) = hours.split_once('-')?;
    let hour = |digits: &str| {
        let plain = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse::<u8>().ok()).flatten()
    };
    let (from, until) = (hour(from)?, hour(until)?);
    let known_zone = zone == "UTC" || zone.split('/').count() >= 2;
    let plain_zone = zone.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+'));
    let fits = first_day <= last_day && from < until && until <= 24 && known_zone && plain_zone;
    fits.then(|| Hours { first_day, last_day, from, until, zone: zone.to_owned() })
}
