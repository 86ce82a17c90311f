//! What an answer could not read: without it, an empty answer would look like good news.

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::neutralise;

/// A source that could not be read, or not in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnreadSource {
    /// The source.
    pub source: String,
    /// Why.
    pub why: String,
}

impl UnreadSource {
    /// One with the first line of a reason, which may be another program's text.
    pub fn new(source: impl Into<String>, why: &str) -> Self {
        Self {
            source: source.into(),
            why: neutralise(why.lines().next().unwrap_or_default()).into_owned(),
        }
    }
}
