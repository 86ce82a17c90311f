//! The revisions of MCP that are served, and their two eras.

use std::fmt;

/// A revision of the specification, named by its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 2024-11-05: the first. What its clients would not understand is a block of audio, and batches; all
    /// else that 2025-03-26 added they may pass over.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation, titles.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, resumable streams; the last stateful one.
    V2025_11_25,
    /// 2026-07-28: stateless; everything stands in each request.
    V2026_07_28,
}

/// What `server/discover` and error -32022 name: only what a request's `_meta` may claim.
pub const MODERN_VERSIONS: &[&str] = &["2026-07-28"];

impl Version {
    /// Every revision, the oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that `initialize` can settle on.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// Reads a revision's date.
    pub fn parse(date: &str) -> Option<Self> {
        match date {
            "2024-11-05" => Some(Self::V2024_11_05),
            "2025-03-26" => Some(Self::V2025_03_26),
            "2025-06-18" => Some(Self::V2025_06_18),
            "2025-11-25" => Some(Self::V2025_11_25),
            "2026-07-28" => Some(Self::V2026_07_28),
            _ => None,
        }
    }

    /// The revision's date.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether requests of this revision stand alone.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether a header's date claims the modern era, served or not (dates compare as text).
    pub fn claims_modern(date: &str) -> bool {
        date >= Self::V2026_07_28.as_str()
    }

    /// What `initialize` settles on: the version asked for when it is stateful, else our newest.
    pub fn negotiate(asked: &str) -> Self {
        Self::parse(asked)
            .filter(|v| !v.is_modern())
            .unwrap_or(Self::LATEST_STATEFUL)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_never_settles_on_the_stateless_revision() {
        for stateful in ["2024-11-05", "2025-03-26", "2025-11-25"] {
            assert_eq!(Version::negotiate(stateful).as_str(), stateful);
        }
        for other in ["2026-07-28", "2024-10-07", "2099-01-01", ""] {
            assert_eq!(Version::negotiate(other), Version::V2025_11_25, "{other}");
        }
    }
}
