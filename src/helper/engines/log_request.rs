//! What a caller wants of a container's log, and a line's position in the log.

use std::fmt;
use std::str::FromStr;

use super::error::EngineError;
use super::kind::EngineKind;

/// The most lines of one answer; a request for more is rejected.
pub const MAX_LOG_LINES: u32 = 10_000;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Which lines of a log are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLogRequest {
    /// Whether the container has a terminal, as [`InspectedContainer::has_tty`](super::InspectedContainer::has_tty)
    /// states.
    pub has_tty: bool,
    /// Which lines are left out if there are too many.
    pub order: EngineLogOrder,
    /// The most lines, 1 to 10,000.
    pub max_lines: u32,
    /// Only lines of one stream; not with a terminal, which has both in one.
    pub stream: Option<EngineLogStream>,
    /// Only lines after this one.
    pub after: Option<EngineLogPosition>,
    /// Only lines before this one.
    pub before: Option<EngineLogPosition>,
    /// Only lines from this time on, in milliseconds since 1970. Podman compares whole seconds.
    pub since_ms: Option<u64>,
    /// Only lines up to this time. Podman compares whole seconds.
    pub until_ms: Option<u64>,
}

/// Which lines are returned if not all fit. They are returned in the order of the log in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineLogOrder {
    /// The last ones.
    Newest,
    /// The first ones.
    Oldest,
}

/// Where a line of a log comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineLogStream {
    /// The container's stdout.
    Stdout,
    /// Its stderr.
    Stderr,
    /// Its terminal.
    Terminal,
}

/// The position of a line in a log: its time, and its number among the lines of exactly that time. As text it
/// is `t=TIME;n=NUMBER`.
///
/// Podman 4 writes times in whole seconds, so the time alone does not identify a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineLogPosition {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// 1 for the first line of that time.
    pub number: u32,
}

impl fmt::Display for EngineLogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={};n={}", self.time_ns, self.number)
    }
}

impl FromStr for EngineLogPosition {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let parts = text
            .strip_prefix("t=")
            .and_then(|rest| rest.split_once(";n="));
        let position = parts.and_then(|(time, number)| {
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            (is_number(time) && is_number(number)).then_some(())?;
            Some(Self {
                time_ns: time.parse().ok()?,
                number: number.parse().ok()?,
            })
        });
        position.ok_or_else(|| {
            EngineError::Invalid(
                "a position in a log must come from an earlier answer for the same log".to_owned(),
            )
        })
    }
}

/// The query of one request to the engine. It gives more lines than wanted; [`LogBounds::contains`] selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogQueryString {
    pub(super) tail: Option<u32>,
    /// In nanoseconds since 1970.
    pub(super) since_ns: Option<u64>,
    pub(super) until_ns: Option<u64>,
}

impl fmt::Display for LogQueryString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both streams, also where one is wanted: a line's number counts the lines of both.
        f.write_str("stdout=1&stderr=1&timestamps=1")?;
        if let Some(tail) = self.tail {
            write!(f, "&tail={tail}")?;
        }
        for (name, time_ns) in [("since", self.since_ns), ("until", self.until_ns)] {
            if let Some(ns) = time_ns {
                write!(f, "&{name}={}.{:09}", ns / NS_PER_S, ns % NS_PER_S)?;
            }
        }
        Ok(())
    }
}

/// The lines that are wanted, by their position.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogBounds {
    kind: EngineKind,
    after: Option<EngineLogPosition>,
    before: Option<EngineLogPosition>,
    since_ns: u64,
    until_ns: Option<u64>,
}

impl LogBounds {
    /// Checks a request, and takes its bounds.
    pub(super) fn new(kind: EngineKind, request: &EngineLogRequest) -> Result<Self, EngineError> {
        if !(1..=MAX_LOG_LINES).contains(&request.max_lines) {
            return Err(EngineError::Invalid(format!(
                "a log is read in 1 to {MAX_LOG_LINES} lines at a time, and {} were requested",
                request.max_lines
            )));
        }
        if request.has_tty && request.stream.is_some() {
            return Err(EngineError::Invalid(
                "the container has a terminal, so its log does not separate stdout and stderr"
                    .to_owned(),
            ));
        }
        let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
        let since_ns = ns(request.since_ms.unwrap_or(0));
        Ok(Self {
            kind,
            after: request.after,
            before: request.before,
            // A line of Podman may be up to a second younger than its time.
            since_ns: match kind {
                EngineKind::Docker => since_ns,
                EngineKind::Podman => since_ns - since_ns % NS_PER_S,
            },
            until_ns: request.until_ms.map(ns),
        })
    }

    /// Whether a line is wanted.
    pub(super) fn contains(&self, position: EngineLogPosition) -> bool {
        self.after.is_none_or(|after| position > after)
            && self.before.is_none_or(|before| position < before)
            && position.time_ns >= self.since_ns
            && self.until_ns.is_none_or(|until| position.time_ns <= until)
    }

    /// The query for these lines. With `tail`, it is for the newest of them.
    pub(super) fn query(&self, tail: Option<u32>, from_ns: u64) -> LogQueryString {
        let after_ns = self.after.map_or(0, |after| after.time_ns);
        let since_ns = from_ns.max(self.since_ns).max(after_ns);
        let before_ns = self.before.map(|before| before.time_ns);
        let until_ns = [self.until_ns, before_ns].into_iter().flatten().min();
        let (since_ns, until_ns) = match self.kind {
            EngineKind::Docker => (since_ns, until_ns),
            // Podman leaves out lines of exactly these times, and it reads the times as floating-point numbers.
            EngineKind::Podman => (
                since_ns.saturating_sub(NS_PER_S),
                until_ns.map(|ns| ns.saturating_add(2 * NS_PER_S)),
            ),
        };
        LogQueryString {
            // Both engines count the last lines before they compare times, so a limit would leave out wanted lines.
            tail: tail.filter(|_| until_ns.is_none()),
            since_ns: (since_ns > 0).then_some(since_ns),
            until_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> EngineLogRequest {
        EngineLogRequest {
            has_tty: false,
            order: EngineLogOrder::Newest,
            max_lines: 100,
            stream: None,
            after: None,
            before: None,
            since_ms: None,
            until_ms: None,
        }
    }

    #[test]
    fn a_position_is_the_same_after_it_was_text() {
        let position = EngineLogPosition {
            time_ns: 1_795_657_902_299_384_110,
            number: 2,
        };
        assert_eq!(position.to_string(), "t=1795657902299384110;n=2");
        assert_eq!(position.to_string().parse(), Ok(position));
        for bad in [
            "",
            "1",
            "t=1",
            "t=;n=",
            "t=1;n=",
            "t=;n=1",
            "t=-1;n=1",
            "t=1;n=+1",
            "t=1;n=1&x=1",
            "t=1;n=99999999999",
            "s=1;n=1",
        ] {
            assert!(bad.parse::<EngineLogPosition>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_requests_are_invalid() {
        for max_lines in [0, MAX_LOG_LINES + 1] {
            let request = EngineLogRequest {
                max_lines,
                ..request()
            };
            assert!(LogBounds::new(EngineKind::Docker, &request).is_err());
        }
        let request = EngineLogRequest {
            has_tty: true,
            stream: Some(EngineLogStream::Stderr),
            ..request()
        };
        assert!(LogBounds::new(EngineKind::Docker, &request).is_err());
    }

    #[test]
    fn the_query_gives_at_least_the_wanted_lines() {
        let query = |kind, request: &EngineLogRequest, tail| {
            let bounds = LogBounds::new(kind, request).unwrap();
            bounds.query(tail, 0).to_string()
        };
        let both = "stdout=1&stderr=1&timestamps=1";
        let all = request();
        let last = query(EngineKind::Docker, &all, Some(101));
        assert_eq!(last, format!("{both}&tail=101"));
        let at = |time_ns| Some(EngineLogPosition { time_ns, number: 1 });
        let part = EngineLogRequest {
            after: at(2_000_000_001),
            until_ms: Some(5_000),
            before: at(4_500_000_000),
            ..request()
        };
        let docker = query(EngineKind::Docker, &part, Some(101));
        assert_eq!(
            docker,
            format!("{both}&since=2.000000001&until=4.500000000")
        );
        let podman = query(EngineKind::Podman, &part, Some(101));
        assert_eq!(
            podman,
            format!("{both}&since=1.000000001&until=6.500000000")
        );
    }

    #[test]
    fn lines_of_one_second_are_distinguished_by_their_number() {
        let part = EngineLogRequest {
            after: Some("t=2000000000;n=2".parse().unwrap()),
            since_ms: Some(1_500),
            until_ms: Some(3_000),
            ..request()
        };
        let bounds = LogBounds::new(EngineKind::Podman, &part).unwrap();
        let wanted = |text: &str| bounds.contains(text.parse().unwrap());
        assert!(!wanted("t=2000000000;n=1") && !wanted("t=2000000000;n=2"));
        assert!(wanted("t=2000000000;n=3") && wanted("t=3000000000;n=1"));
        assert!(!wanted("t=4000000000;n=1"));
    }
}
