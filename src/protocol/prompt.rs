//! A prompt and its messages.

use serde::Serialize;

use super::content::{Content, Role};

/// A prompt as `prompts/list` shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Prompt {
    /// The name that `prompts/get` takes.
    pub name: String,
    /// Its name for people; 2025-06-18 and later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required.
    pub required: bool,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: Content,
}
