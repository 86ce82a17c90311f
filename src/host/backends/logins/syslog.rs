//! Parses lines of a syslog file, such as `/var/log/auth.log`.

use gatewren_base::sys::{LocalZone, moment_ms};

use super::event::LoginEvent;
use super::messages::{LogMessage, login_of};

/// The months of the old form of a line.
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// How old a line without a year may seem to be in the future: its clock may be ahead a little.
const AHEAD_MS: u64 = 24 * 60 * 60 * 1000;

/// What the lines of a file do not state.
#[derive(Debug, Clone, Copy)]
pub struct SyslogFacts<'z> {
    /// The zone of lines with local times.
    pub zone: &'z LocalZone,
    /// The current time, in milliseconds since 1970: older lines have no year.
    pub now_ms: u64,
}

/// Parses the logins of a file.
pub fn syslog_events(bytes: &[u8], facts: SyslogFacts<'_>) -> Vec<LoginEvent> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(|line| event(line, facts)).collect()
}

fn event(line: &str, facts: SyslogFacts<'_>) -> Option<LoginEvent> {
    let (at_ms, rest) = time(line, facts)?;
    // The host's name, then `program[pid]: message`.
    let (_, rest) = rest.split_once(' ')?;
    let (tag, text) = rest.split_once(": ")?;
    let (program, pid) = match tag.split_once('[') {
        Some((program, pid)) => (program, pid.trim_end_matches(']').parse().ok()),
        None => (tag, None),
    };
    login_of(LogMessage {
        at_ms,
        program,
        pid,
        text,
    })
}

/// Splits off the time: `2026-07-28T09:30:00.123456+02:00`, or `Jul 28 09:30:00` without a year.
fn time<'l>(line: &'l str, facts: SyslogFacts<'_>) -> Option<(u64, &'l str)> {
    if line.starts_with(|first: char| first.is_ascii_digit()) {
        let (time, rest) = line.split_once(' ')?;
        return Some((moment_ms(time)?, rest));
    }
    let (stamp, rest) = line.split_at_checked("Jul 28 09:30:00".len())?;
    let mut words = stamp.split_whitespace();
    let (month, day, clock) = (words.next()?, words.next()?, words.next()?);
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    let day: u8 = day.parse().ok()?;
    let this_year: u64 = gatewren_base::sys::rfc3339(facts.now_ms)
        .get(..4)?
        .parse()
        .ok()?;
    let in_year = |year: u64| {
        facts
            .zone
            .ms(&format!("{year:04}-{month:02}-{day:02} {clock}"))
    };
    // A line of December that is read in January is of the last year.
    let at_ms = in_year(this_year)
        .filter(|at_ms| *at_ms <= facts.now_ms.saturating_add(AHEAD_MS))
        .or_else(|| in_year(this_year.saturating_sub(1)))?;
    Some((at_ms, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_line_are_read() {
        let file = b"2026-07-28T11:30:00.5+02:00 box sshd[12]: Accepted publickey for ada from 192.0.2.7 port 5 ssh2\n\
            Jul  8 09:30:00 box su: (to root) ada on pts/0\n\
            Dec 31 23:00:00 box sshd[13]: Invalid user eve from 192.0.2.8 port 7\n\
            garbage\nJul\n\xff\xfe Jul 99 x\n";
        let zone = LocalZone::utc();
        let facts = SyslogFacts {
            zone: &zone,
            // 2026-07-28T09:31:00Z
            now_ms: 1_785_231_060_000,
        };
        let found = syslog_events(file, facts);
        let shown: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.user.as_str(),
                    gatewren_base::sys::rfc3339(one.at_ms),
                    one.pid,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("ada", "2026-07-28T09:30:00.500Z".to_owned(), Some(12)),
                ("ada", "2026-07-08T09:30:00.000Z".to_owned(), None),
                ("eve", "2025-12-31T23:00:00.000Z".to_owned(), Some(13)),
            ]
        );
    }
}
