//! The supported revisions of MCP, and their two eras.

use std::fmt;

/// A revision of the specification, named by its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 2024-11-05: the first. Its clients do not understand audio blocks and batches; they may ignore everything
    /// else that 2025-03-26 added.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation, titles.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, resumable streams; the last stateful one.
    V2025_11_25,
    /// 2026-07-28: stateless; each request is self-contained.
    V2026_07_28,
}

/// The versions in `server/discover` and error -32022: only those that a request's `_meta` may claim.
pub const MODERN_VERSIONS: &[&str] = &["2026-07-28"];

impl Version {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that `initialize` can negotiate.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// Parses a revision's date.
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

    /// Returns whether requests of this revision are self-contained.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Returns whether a header's date claims the modern era, supported or not (dates compare as text).
    pub fn claims_modern(date: &str) -> bool {
        date >= Self::V2026_07_28.as_str()
    }

    /// Returns the version that `initialize` negotiates: the requested one if it is stateful, else our newest.
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
