//! Points in time and durations, as records hold them.
//!
//! A [`Timestamp`] is UTC with milliseconds and survives any number of round
//! trips through text. This module does not read the clock except in
//! [`Timestamp::now`], which only the drivers may call.

pub(crate) mod zone;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// As text it is RFC 3339 with exactly three decimals and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// Text that is no timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: write RFC 3339 in UTC, such as `2026-07-27T00:00:00.000Z`")]
pub struct InvalidTimestamp(pub String);

/// The last millisecond of the year 9999: later ones have no RFC 3339 text.
const MILLIS_MAX: i64 = 253_402_207_200_999;

impl Timestamp {
    /// Reads the wall clock.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock; cores get time in events")]
    pub fn now() -> Self {
        Self::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    /// Makes a timestamp from milliseconds since the epoch; clamps to the years 1970 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, MILLIS_MAX))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// This time and `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// How long after `earlier` this is; zero where it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;
    fn try_from(value: String) -> Result<Self, InvalidTimestamp> {
        // Only the exact form that Display writes: anything looser would change a hash on its way.
        let parsed = (value.len() == 24 && value.ends_with('Z'))
            .then(|| value.parse::<jiff::Timestamp>().ok())
            .flatten()
            .map(|t| Self(t.as_millisecond()))
            .filter(|t| t.to_string() == value);
        parsed.ok_or(InvalidTimestamp(value))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;
    fn from_str(value: &str) -> Result<Self, InvalidTimestamp> {
        Self::try_from(value.to_owned())
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0.clamp(0, MILLIS_MAX)).map_err(|_| fmt::Error)?;
        write!(f, "{time:.3}")
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
        })
    }
}

/// A length of time in whole milliseconds, written `250ms`, `30s`, `5m`, `2h` or `7d` in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(u64);

/// Text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a whole number and a unit, such as `250ms`, `30s`, `5m`, `2h` or `7d`")]
pub struct InvalidSpan(pub String);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Span {
    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000)
    }

    /// The span in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The span as a standard duration.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl TryFrom<String> for Span {
    type Error = InvalidSpan;
    fn try_from(value: String) -> Result<Self, InvalidSpan> {
        let split = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        let (number, unit) = value.split_at(split);
        let leading_zero = number.len() > 1 && number.starts_with('0');
        let millis = UNITS
            .iter()
            .find(|(name, _)| *name == unit && !leading_zero)
            .and_then(|(_, factor)| number.parse::<u64>().ok()?.checked_mul(*factor));
        millis.map(Self).ok_or(InvalidSpan(value))
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;
    fn from_str(value: &str) -> Result<Self, InvalidSpan> {
        Self::try_from(value.to_owned())
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = UNITS.iter().rev().find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor));
        let (unit, factor) = largest.unwrap_or(&UNITS[1]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^(0|[1-9][0-9]*)(ms|s|m|h|d)$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_timestamp_survives_a_round_trip(millis in 0..=MILLIS_MAX) {
            let time = Timestamp::from_millis(millis);
            prop_assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        }

        #[test]
        fn every_span_survives_a_round_trip(millis in 0..u64::MAX) {
            let span = Span::from_millis(millis);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }

    #[test]
    fn times_with_other_precision_or_zone_are_refused() {
        for bad in [
            "2026-07-27T00:00:00Z",
            "2026-07-27T00:00:00.0000Z",
            "2026-07-27T00:00:00.000+00:00",
            "2026-07-27 00:00:00.000Z",
            "",
        ] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_without_unit_or_with_odd_numbers_are_refused() {
        for bad in ["5", "010s", "1_000s", "1e3s", "1.5h", "-1s", "s", "5 m", "5M", "99999999999999999999d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        assert_eq!("90m".parse::<Span>().unwrap().as_millis(), 5_400_000);
    }
}
