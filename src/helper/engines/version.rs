//! Versions of the engines' API, and which one is used with an engine.

use std::fmt;

use super::error::EngineError;
use super::kind::EngineKind;

/// A version of the API, such as 1.41.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion {
    /// The part before the point.
    pub major: u16,
    /// The part after it.
    pub minor: u16,
}

impl ApiVersion {
    /// The newest version that this client has been written for.
    pub const NEWEST: Self = Self {
        major: 1,
        minor: 47,
    };
    /// The oldest version that this client accepts: Docker 19.03 of 2019.
    pub const OLDEST: Self = Self {
        major: 1,
        minor: 40,
    };

    /// Parses `1.41`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(major) || !is_number(minor) {
            return None;
        }
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    /// Returns the version to use with an engine that has versions up to `newest`.
    pub(super) fn negotiate(kind: EngineKind, newest: Self) -> Result<Self, EngineError> {
        let version = newest.min(Self::NEWEST);
        if version >= Self::OLDEST {
            return Ok(version);
        }
        let oldest = Self::OLDEST;
        Err(EngineError::TooOld(format!(
            "this {kind} has version {newest} of the API, and gatewren needs {oldest} or newer; update {kind}"
        )))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers() {
        let version = ApiVersion::parse("1.41").unwrap();
        assert_eq!((version.major, version.minor), (1, 41));
        assert_eq!(version.to_string(), "1.41");
        for bad in ["", "1", "1.", ".1", "1.+4", "1.41.2", "v1.41", "1.99999"] {
            assert_eq!(ApiVersion::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_older_of_both_newest_versions_is_used() {
        let used = |newest: &str| {
            let newest = ApiVersion::parse(newest).unwrap();
            ApiVersion::negotiate(EngineKind::Docker, newest).map(|version| version.to_string())
        };
        assert_eq!(used("1.41").unwrap(), "1.41");
        assert_eq!(used("1.52").unwrap(), "1.47");
        assert_eq!(used("2.0").unwrap(), "1.47");
        let refused = used("1.39").unwrap_err();
        assert!(matches!(&refused, EngineError::TooOld(_)), "{refused}");
        assert!(refused.message().contains("1.39") && refused.message().contains("1.40"));
    }
}
