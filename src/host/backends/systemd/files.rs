//! The state of a unit's file: whether the unit starts at boot.

use schemars::JsonSchema;
use serde::Serialize;

/// The state of a unit's file in systemd's terms, such as `enabled`, `disabled`, `static` or
/// `masked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct UnitFileState(String);

impl UnitFileState {
    /// Returns systemd's term.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the unit is enabled, permanently or until the next boot.
    pub fn is_enabled(&self) -> bool {
        matches!(self.0.as_str(), "enabled" | "enabled-runtime")
    }
}

impl From<String> for UnitFileState {
    fn from(word: String) -> Self {
        Self(word)
    }
}
