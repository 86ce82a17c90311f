//! The current time, and how timestamps are written.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::libc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A larger clock error means that the clock has not been synchronised for a long time; systemd uses the same
/// limit.
const MAX_ERROR_US: libc::c_long = 16_000_000;

/// How far [`now_ms`] is behind the clock in milliseconds; 0 except while a [`PastClock`] exists.
static BEHIND_MS: AtomicU64 = AtomicU64::new(0);

/// Returns milliseconds since 1970-01-01T00:00:00Z; 0 if the clock is set before that.
pub fn now_ms() -> u64 {
    clock_ms().saturating_sub(BEHIND_MS.load(Ordering::Relaxed))
}

fn clock_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

/// Sets the time of [`now_ms`] back, for all threads, until it is dropped. A demo writes its invented past with it,
/// through the same writers as a server, before it serves.
#[derive(Debug)]
pub struct PastClock {
    behind_ms: &'static AtomicU64,
}

impl PastClock {
    /// Begins; the time is right until [`Self::set`].
    pub fn begin() -> Self {
        Self {
            behind_ms: &BEHIND_MS,
        }
    }

    /// Sets the time, which continues from there. A time in the future counts as now.
    pub fn set(&self, at_ms: u64) {
        let behind_ms = clock_ms().saturating_sub(at_ms);
        self.behind_ms.store(behind_ms, Ordering::Relaxed);
    }
}

impl Drop for PastClock {
    fn drop(&mut self) {
        self.behind_ms.store(0, Ordering::Relaxed);
    }
}

/// Formats a timestamp as RFC 3339 in UTC with milliseconds, such as `2026-07-28T09:30:00.125Z`.
///
/// A timestamp after the year 9999, which RFC 3339 cannot express, is written as the last millisecond of that year.
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

/// Parses an RFC 3339 timestamp, or a date, which means its midnight in UTC. Returns milliseconds since 1970.
pub fn moment_ms(text: &str) -> Option<u64> {
    let whole = if text.len() == "2026-07-28".len() {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    let moment = OffsetDateTime::parse(&whole, &Rfc3339).ok()?;
    u64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok()
}

/// Returns whether time synchronisation such as NTP is active (adjtimex(2)); `None` where the system call is not
/// permitted, as under systemd's `ProtectClock=`.
pub fn clock_is_synchronised() -> Option<bool> {
    let mut clock = MaybeUninit::<libc::timex>::zeroed();
    #[expect(unsafe_code, reason = "adjtimex has no safe wrapper")]
    // SAFETY: all zero is a request that changes nothing; the kernel fills the structure.
    let answer = unsafe { libc::adjtimex(clock.as_mut_ptr()) };
    if answer == -1 {
        return None;
    }
    #[expect(unsafe_code, reason = "the kernel has filled it")]
    // SAFETY: it was zeroed before, which is valid for every field.
    let clock = unsafe { clock.assume_init() };
    Some(clock.maxerror < MAX_ERROR_US)
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
    fn the_kernel_says_whether_the_clock_is_right() {
        // The answer depends on the host; here nothing forbids the system call.
        assert!(clock_is_synchronised().is_some());
    }

    #[test]
    fn now_is_after_this_was_written() {
        assert!(now_ms() > 1_700_000_000_000);
    }
}
