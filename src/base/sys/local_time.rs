//! Converts local times, as logs of packages write them, to UTC.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use gatewren_portable::files::read_bounded;

/// The largest file of a time zone; those of tzdata have at most a few kilobytes.
const ZONE_BYTES: usize = 64 << 10;

/// A time zone.
#[derive(Debug, Clone)]
pub struct LocalZone(TimeZone);

impl LocalZone {
    /// UTC, which applies without `/etc/localtime` (localtime(5)).
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Parses the content of `/etc/localtime` (RFC 9636); `None` if it is damaged or too large.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > ZONE_BYTES {
            return None;
        }
        TimeZone::tzif("local", bytes).ok().map(Self)
    }

    /// The zone of this host: UTC if the file is missing or damaged.
    pub fn of_host() -> Self {
        let bytes = read_bounded(Path::new("/etc/localtime"), ZONE_BYTES).ok();
        bytes
            .and_then(|bytes| Self::parse(&bytes))
            .unwrap_or_else(Self::utc)
    }

    /// Returns milliseconds since 1970 for a local time such as `2026-07-28 09:30:00`; any number of spaces, or a
    /// `T`, is between date and time. Of an hour that occurs twice, the first one is taken.
    pub fn ms(&self, local: &str) -> Option<u64> {
        let mut words = local.split([' ', 'T']).filter(|word| !word.is_empty());
        let (date, time) = (words.next()?, words.next()?);
        let moment: DateTime = format!("{date}T{time}").parse().ok()?;
        let moment = self.0.to_ambiguous_timestamp(moment).compatible().ok()?;
        u64::try_from(moment.as_millisecond()).ok()
    }

    /// Returns the local day of a time in milliseconds since 1970, as a number of days since 1970, and its hour.
    pub fn day_and_hour(&self, ms: u64) -> Option<(i64, usize)> {
        let moment = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
        let local = moment.to_zoned(self.0.clone());
        let day = local.date().duration_since(Date::constant(1970, 1, 1));
        Some((day.as_hours() / 24, usize::try_from(local.hour()).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rfc3339;
    use super::*;

    /// A zone as version 2 of the format writes it: no transitions, and the rule of Vienna.
    fn vienna() -> Vec<u8> {
        let block = |out: &mut Vec<u8>| {
            out.extend(b"TZif2");
            out.extend([0; 15]);
            // No leap seconds and no transitions; one type, and its four letters.
            for count in [0_u32, 0, 0, 0, 1, 4] {
                out.extend(count.to_be_bytes());
            }
            out.extend(3600_i32.to_be_bytes());
            out.extend([0, 0]);
            out.extend(b"CET\0");
        };
        let mut zone = Vec::new();
        block(&mut zone);
        block(&mut zone);
        zone.extend(b"\nCET-1CEST,M3.5.0,M10.5.0/3\n");
        zone
    }

    #[test]
    fn a_local_time_is_converted_by_the_zone_of_its_season() {
        let zone = LocalZone::parse(&vienna()).unwrap();
        let utc = |zone: &LocalZone, text: &str| zone.ms(text).map(rfc3339);
        for (local, expected) in [
            ("2026-07-28  09:30:00", "2026-07-28T07:30:00.000Z"),
            ("2026-01-28T09:30:00", "2026-01-28T08:30:00.000Z"),
            ("2026-10-25 02:30:00", "2026-10-25T00:30:00.000Z"),
        ] {
            assert_eq!(utc(&zone, local).as_deref(), Some(expected), "{local}");
        }
        let in_utc = utc(&LocalZone::utc(), "2026-07-28 09:30:00");
        assert_eq!(in_utc.as_deref(), Some("2026-07-28T09:30:00.000Z"));
    }

    #[test]
    fn a_time_is_in_a_local_day_and_hour() {
        let zone = LocalZone::parse(&vienna()).unwrap();
        let evening = 20_000 * 86_400_000 + 23 * 3_600_000 + 59 * 60_000;
        assert_eq!(LocalZone::utc().day_and_hour(evening), Some((20_000, 23)));
        // The day 20,000 is in October, before the end of the summer time.
        assert_eq!(zone.day_and_hour(evening), Some((20_001, 1)));
        assert_eq!(zone.day_and_hour(u64::MAX), None);
    }

    #[test]
    fn a_damaged_zone_and_a_text_without_a_time_are_rejected() {
        assert!(LocalZone::parse(b"TZif").is_none());
        assert!(LocalZone::parse(&vec![0; ZONE_BYTES + 1]).is_none());
        for bad in [
            "",
            "2026-07-28",
            "2026-13-28 09:30:00",
            "x y",
            "2026-07-28 25:00:00",
        ] {
            assert_eq!(LocalZone::utc().ms(bad), None, "{bad}");
        }
    }
}
