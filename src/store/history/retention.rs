//! How long samples are kept, and how much at most.

/// How long the sample of each minute is kept, in seconds.
pub const KEPT_MINUTES_S: u64 = 24 * 3600;

/// How long the mean and maximum of each 15 minutes are kept, in seconds.
pub const KEPT_QUARTERS_S: u64 = 30 * 24 * 3600;

/// The most containers of one sample; further ones are left out.
pub const MAX_CONTAINERS: usize = 100;

/// The length of a summary in seconds.
pub(super) const QUARTER_S: i64 = 900;

/// Returns the begin of the quarter of an hour that a time is in.
pub(super) fn quarter_of(at_s: i64) -> i64 {
    at_s.saturating_sub(at_s.rem_euclid(QUARTER_S))
}
