//! A message to the owner: only its content, because the sender does not choose recipient and channel.

use serde::{Deserialize, Serialize};

/// The maximum size of the subject in bytes; a longer one is rejected.
pub const SUBJECT_BYTES: usize = 1024;

/// The maximum size of the text in bytes; a longer one is rejected.
pub const TEXT_BYTES: usize = 8 * 1024;

/// The message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailMessage {
    /// The subject line.
    pub subject: String,
    /// The whole text.
    pub text: String,
    /// The name of the agent that wrote the text; absent for texts of gatewren itself.
    #[serde(default)]
    pub agent: Option<String>,
}
