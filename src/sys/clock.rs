//! What time it is, and how a moment is written.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;

/// Milliseconds since 1970-01-01T00:00:00Z; 0 on a clock set before that.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

/// A moment as RFC 3339 in UTC with milliseconds, such as `2026-07-28T09:30:00.125Z`.
///
/// A moment past the year 9999, which RFC 3339 cannot write, comes out as its last millisecond.
pub fn rfc3339(ms: u64) -> String {
    const LAST: &str = "9999-12-31T23:59:59.999Z";
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    let Ok(moment) = moment.map(|moment| (moment, moment.to_hms_milli())) else {
        return LAST.to_owned();
    };
    let (date, (hour, minute, second, milli)) = (moment.0.date(), moment.1);
    format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z",
        date.year(),
        u8::from(date.month()),
        date.day()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_the_rfc_says() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_785_231_000_125), "2026-07-28T09:30:00.125Z");
        assert_eq!(rfc3339(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn now_is_after_this_was_written() {
        assert!(now_ms() > 1_700_000_000_000);
    }
}
