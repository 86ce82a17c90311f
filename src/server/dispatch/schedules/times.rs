//! The times of a schedule: which are accepted, and the next ones.

use gatewren_base::sys::{Calendar, now_ms, rfc3339};

/// The shortest interval between two runs, in seconds. A more frequent schedule is refused.
const MIN_INTERVAL_S: u32 = 300;

/// The number of upcoming times in an answer.
pub const UPCOMING: usize = 3;

/// Parses the times of a schedule. Refuses times that are too frequent, and those that never come.
pub fn parse_times(text: &str) -> Result<Calendar, String> {
    let calendar: Calendar = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    let shortest = calendar.shortest_interval_s();
    if shortest < MIN_INTERVAL_S {
        return Err(format!(
            "{text:?} runs every {shortest} s; the shortest interval of a schedule is {MIN_INTERVAL_S} s"
        ));
    }
    if calendar.next_after(now_ms()).is_none() {
        return Err(format!("{text:?} has no time in the future"));
    }
    Ok(calendar)
}

/// Returns the next times from now on, as RFC 3339.
pub fn upcoming(calendar: &Calendar) -> Vec<String> {
    let times = calendar.upcoming(now_ms(), UPCOMING);
    times.into_iter().map(rfc3339).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_too_frequent_or_past_are_refused() {
        assert!(parse_times("*:0/5").is_ok());
        for (text, why) in [
            ("*:0/4", "every 240 s"),
            ("*:*:0/10", "every 10 s"),
            ("minutely", "every 60 s"),
            ("2020-01-01", "no time in the future"),
            ("*-02-31", "no time in the future"),
            ("every day", "systemd.time(7)"),
        ] {
            let error = parse_times(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
