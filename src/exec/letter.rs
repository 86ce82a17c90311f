//! A letter to the owner: what it says; to whom it goes, and how, is not its sender's to say.

use serde::{Deserialize, Serialize};

/// The longest subject, in bytes; a longer one is refused.
pub const SUBJECT_BYTES: usize = 1024;

/// The longest text, in bytes; a longer one is refused.
pub const TEXT_BYTES: usize = 8 * 1024;

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Letter {
    /// A few words.
    pub subject: String,
    /// All of it.
    pub text: String,
    /// The name of the agent whose words they are; they are ours when absent.
    #[serde(default)]
    pub agent: Option<String>,
}
