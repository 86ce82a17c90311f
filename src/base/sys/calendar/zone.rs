//! The time zone of a calendar expression: the host's, UTC, or a named one.

use std::fs;
use std::path::Path;

use jiff::tz::TimeZone;

use super::error::CalendarError;

/// The host's zone; systemd sets it as a link into the directory of all zones.
const LOCAL: &str = "/etc/localtime";

/// The directory of all zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// The maximum size of a zone's file in bytes. A larger file is not read.
const MAX_BYTES: u64 = 256 << 10;

/// The zone of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CalendarZone {
    /// The host's zone.
    Local,
    /// UTC.
    Utc,
    /// A zone by its name, such as `Europe/Berlin`.
    Named(String),
}

impl CalendarZone {
    /// Splits the zone off the end of an expression; without one it is the host's zone.
    pub(super) fn split_off(text: &str) -> Result<(&str, Self), CalendarError> {
        let Some((body, last)) = text.rsplit_once(' ') else {
            return Ok((text, Self::Local));
        };
        if last.eq_ignore_ascii_case("UTC") {
            return Ok((body, Self::Utc));
        }
        // A zone has a slash after its first letter; a step has one after a digit.
        let is_name = last.starts_with(|c: char| c.is_ascii_alphabetic()) && last.contains('/');
        if !is_name {
            return Ok((text, Self::Local));
        }
        let is_plain = last
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
        let zone = Self::Named(last.to_owned());
        if is_plain && zone.load().is_some() {
            Ok((body, zone))
        } else {
            Err(CalendarError::new("this host does not know the time zone"))
        }
    }

    /// Reads the zone's rules. The host's zone is read each time, because it can be changed; without a file it is UTC.
    /// `None` for a named zone that the host does not have.
    pub(super) fn load(&self) -> Option<TimeZone> {
        match self {
            Self::Utc => Some(TimeZone::UTC),
            Self::Local => Some(read(Path::new(LOCAL)).unwrap_or(TimeZone::UTC)),
            Self::Named(name) => read(&Path::new(ZONES).join(name)),
        }
    }
}

fn read(file: &Path) -> Option<TimeZone> {
    let is_small =
        fs::metadata(file).is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_BYTES);
    let bytes = is_small.then(|| fs::read(file).ok())??;
    TimeZone::tzif("zone", &bytes).ok()
}
