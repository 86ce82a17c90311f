//! Whether a unit is started at boot: the state of its file.

use schemars::JsonSchema;
use serde::Serialize;

/// The state of a unit's file, in systemd's own word, such as `enabled`, `disabled`, `static` or `masked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct UnitFileState(String);

impl UnitFileState {
    /// Systemd's word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the unit was enabled, for good or until the next boot.
    pub fn is_enabled(&self) -> bool {
        matches!(self.0.as_str(), "enabled" | "enabled-runtime")
    }
}

impl From<String> for UnitFileState {
    fn from(word: String) -> Self {
        Self(word)
    }
}
