//! The shapes of values: parsing from TOML, writing, and the expected form for errors.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use toml::de::DeValue;

use super::error::UnknownWord;
use super::glob::Glob;
use super::network::IpNetwork;

/// The maximum number of entries in a list. A longer one is rejected.
const MAX_ENTRIES: usize = 64;

/// Parses a `T` from TOML and writes it.
pub(super) trait Shape<T> {
    /// Returns the value, or the expected form.
    fn read(&self, value: &DeValue<'_>) -> Result<T, String>;
    /// Returns the value as TOML.
    fn write(&self, value: &T) -> String;
}

/// `true` or `false`.
pub(super) struct Flag;

impl Shape<bool> for Flag {
    fn read(&self, value: &DeValue<'_>) -> Result<bool, String> {
        value.as_bool().ok_or_else(|| "true or false".to_owned())
    }

    fn write(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// An integer in a range.
pub(super) struct Count(pub RangeInclusive<u32>);

impl Shape<u32> for Count {
    fn read(&self, value: &DeValue<'_>) -> Result<u32, String> {
        let number = value
            .as_integer()
            .and_then(|digits| u32::from_str_radix(digits.as_str(), digits.radix()).ok());
        number.filter(|n| self.0.contains(n)).ok_or_else(|| {
            let (least, most) = (self.0.start(), self.0.end());
            format!("a whole number from {least} to {most}")
        })
    }

    fn write(&self, value: &u32) -> String {
        value.to_string()
    }
}

/// A duration with a unit, in a range: `"500ms"`, `"10s"`, `"5m"`, `"2h"`, `"30d"`.
pub(super) struct Time(pub RangeInclusive<Duration>);

/// The units of time with their milliseconds, longest first.
const TIME_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Shape<Duration> for Time {
    fn read(&self, value: &DeValue<'_>) -> Result<Duration, String> {
        let time = value
            .as_str()
            .and_then(|text| with_unit(text, &TIME_UNITS))
            .map(Duration::from_millis);
        time.filter(|time| self.0.contains(time)).ok_or_else(|| {
            let (least, most) = (self.write(self.0.start()), self.write(self.0.end()));
            format!("a time from {least} to {most}, with one of the units ms, s, m, h, d")
        })
    }

    fn write(&self, value: &Duration) -> String {
        let ms = u64::try_from(value.as_millis()).unwrap_or(u64::MAX);
        in_units(ms, &TIME_UNITS, "s")
    }
}

/// A number of bytes in a range: `"64KiB"`, `"1MiB"`.
pub(super) struct Size(pub RangeInclusive<usize>);

/// The units of size with their bytes, largest first.
const SIZE_UNITS: [(&str, u64); 3] = [("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Shape<usize> for Size {
    fn read(&self, value: &DeValue<'_>) -> Result<usize, String> {
        let size = value
            .as_str()
            .and_then(|text| with_unit(text, &SIZE_UNITS))
            .and_then(|bytes| usize::try_from(bytes).ok());
        size.filter(|size| self.0.contains(size)).ok_or_else(|| {
            let (least, most) = (self.write(self.0.start()), self.write(self.0.end()));
            format!("a size from {least} to {most}, with one of the units B, KiB, MiB")
        })
    }

    fn write(&self, value: &usize) -> String {
        in_units(u64::try_from(*value).unwrap_or(u64::MAX), &SIZE_UNITS, "B")
    }
}

/// Parses a number with a unit, with or without a space between them. Returns the amount in the smallest unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Returns the shortest exact form of an amount, in quotes.
fn in_units(amount: u64, units: &[(&str, u64)], of_zero: &str) -> String {
    if amount == 0 {
        return format!("\"0{of_zero}\"");
    }
    let fitting = units
        .iter()
        .find(|(_, factor)| amount.is_multiple_of(*factor));
    let (unit, factor) = fitting.copied().unwrap_or(("", 1));
    format!("\"{}{unit}\"", amount / factor)
}

/// One of the words of an enum.
pub(super) struct Word;

impl<T: FromStr<Err = UnknownWord> + Display> Shape<T> for Word {
    fn read(&self, value: &DeValue<'_>) -> Result<T, String> {
        // A value that is not a text gets the same error as an unknown word.
        let word = value.as_str().unwrap_or("");
        word.parse()
            .map_err(|error: UnknownWord| format!("one of {}, in quotes", error.known_words()))
    }

    fn write(&self, value: &T) -> String {
        format!("\"{value}\"")
    }
}

/// An absolute path. For an optional one, `""` means none.
pub(super) struct AbsolutePath;

impl Shape<PathBuf> for AbsolutePath {
    fn read(&self, value: &DeValue<'_>) -> Result<PathBuf, String> {
        let path = value.as_str().map(Path::new);
        path.filter(|path| path.is_absolute())
            .map(Path::to_owned)
            .ok_or_else(|| "an absolute path in quotes, such as \"/var/lib/gatewren\"".to_owned())
    }

    fn write(&self, value: &PathBuf) -> String {
        toml::Value::from(value.to_string_lossy().into_owned()).to_string()
    }
}

impl Shape<Option<PathBuf>> for AbsolutePath {
    fn read(&self, value: &DeValue<'_>) -> Result<Option<PathBuf>, String> {
        if value.as_str() == Some("") {
            Ok(None)
        } else {
            self.read(value).map(Some)
        }
    }

    fn write(&self, value: &Option<PathBuf>) -> String {
        value
            .as_ref()
            .map_or_else(|| "\"\"".to_owned(), |path| self.write(path))
    }
}

/// A list of texts with a parser for entries.
pub(super) struct List<T> {
    /// Parses one entry.
    pub entry: fn(&str) -> Option<T>,
    /// The expected form of an entry, for errors.
    pub like: &'static str,
    /// Whether the list may be empty.
    pub may_be_empty: bool,
}

impl<T: ToString> Shape<Vec<T>> for List<T> {
    fn read(&self, value: &DeValue<'_>) -> Result<Vec<T>, String> {
        let entries = value.as_array().and_then(|list| {
            list.iter()
                .map(|entry| entry.get_ref().as_str().and_then(self.entry))
                .collect::<Option<Vec<T>>>()
        });
        let least = usize::from(!self.may_be_empty);
        entries
            .filter(|list| (least..=MAX_ENTRIES).contains(&list.len()))
            .ok_or_else(|| {
                let like = self.like;
                format!("a list of {least} to {MAX_ENTRIES} entries, each {like}")
            })
    }

    fn write(&self, value: &Vec<T>) -> String {
        let quoted = value
            .iter()
            .map(|entry| format!("\"{}\"", entry.to_string()));
        format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
    }
}

/// Addresses to listen on.
pub(super) const SOCKETS: List<SocketAddr> = List {
    entry: |text| text.parse().ok(),
    like: "an address with a port, such as \"0.0.0.0:8443\" or \"[::]:8443\"",
    may_be_empty: false,
};

/// Patterns for unit names.
pub(super) const UNITS: List<Glob> = List {
    entry: |text| text.parse().ok(),
    like: "a unit's name in quotes, where * matches any characters and ? matches one, such as \"backup-*.timer\"",
    may_be_empty: true,
};

/// Host names and addresses, without a port.
pub(super) const HOSTS: List<String> = List {
    entry: host,
    like: "a host name or an address without a port, such as \"box.lan\" or \"192.168.1.10\"",
    may_be_empty: true,
};

/// Addresses and address ranges.
pub(super) const NETWORKS: List<IpNetwork> = List {
    entry: |text| text.parse().ok(),
    like: "an address or a range of addresses, such as \"192.168.1.2\" or \"172.17.0.0/16\"",
    may_be_empty: true,
};

/// Origins of web pages.
pub(super) const ORIGINS: List<String> = List {
    entry: origin,
    like: "a scheme and a host, such as \"https://box.lan:8443\", without a path",
    may_be_empty: true,
};

fn host(text: &str) -> Option<String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let good = text.parse::<IpAddr>().is_ok() || text.len() <= 253 && text.split('.').all(label);
    good.then(|| text.to_ascii_lowercase())
}

fn origin(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    let good = !rest.is_empty() && rest.len() <= 300 && rest.chars().all(fits);
    good.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T, S: Shape<T>>(shape: &S, toml: &str) -> Result<T, String> {
        let value = DeValue::parse(toml).unwrap();
        shape.read(value.get_ref())
    }

    #[test]
    fn times_have_units() {
        let shape = Time(Duration::from_millis(1)..=Duration::from_hours(8760));
        for (text, ms) in [
            ("\"1ms\"", 1),
            ("\"10s\"", 10_000),
            ("\"90 s\"", 90_000),
            ("\"2h\"", 7_200_000),
            ("\"30d\"", 2_592_000_000),
        ] {
            assert_eq!(read(&shape, text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in [
            "10",
            "\"10\"",
            "\"s\"",
            "\"-1s\"",
            "\"1w\"",
            "\"99999999999999999999d\"",
        ] {
            let error = read(&shape, bad).unwrap_err();
            assert_eq!(
                error,
                "a time from \"1ms\" to \"365d\", with one of the units ms, s, m, h, d"
            );
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let time = Time(Duration::ZERO..=Duration::MAX);
        for ms in [0, 1, 999, 1000, 90_000, 3_600_000, 86_400_001] {
            let value = Duration::from_millis(ms);
            assert_eq!(read(&time, &time.write(&value)), Ok(value));
        }
        let size = Size(0..=usize::MAX);
        for value in [0, 1, 1024, 1025, 1 << 20, 3 << 20] {
            assert_eq!(read(&size, &size.write(&value)), Ok(value));
        }
        let path = PathBuf::from("/with \"quotes\" and \\");
        let written = <AbsolutePath as Shape<PathBuf>>::write(&AbsolutePath, &path);
        assert_eq!(read(&AbsolutePath, &written), Ok(path));
    }

    #[test]
    fn hosts_and_origins() {
        for good in [
            "box",
            "box.lan",
            "192.168.1.10",
            "fe80::1",
            "xn--bcher-kva.example",
        ] {
            assert!(host(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "box:8443",
            "https://box",
            "a b",
            "-x",
            "a..b",
            &"x".repeat(64),
        ] {
            assert!(host(bad).is_none(), "{bad}");
        }
        for good in [
            "https://box.lan:8443",
            "http://localhost",
            "https://[::1]:1",
        ] {
            assert!(origin(good).is_some(), "{good}");
        }
        for bad in [
            "box.lan",
            "https://",
            "https://box/path",
            "ftp://x",
            "https://a b",
        ] {
            assert!(origin(bad).is_none(), "{bad}");
        }
    }
}
