//! One prompt: its definition and the function that writes its messages.

use serde_json::{Map, Value};

use super::{cx::Cx, error::Result, resource::BoxFuture};
use crate::protocol::{Prompt, PromptMessage};

type Function = dyn Fn(Map<String, Value>, Cx) -> BoxFuture<Result<PromptAnswer>> + Send + Sync;

/// What asking for a prompt gives.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptAnswer {
    /// What the prompt is about.
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<PromptMessage>,
}

/// A prompt that can be listed and asked for.
pub struct PromptRow {
    /// What `prompts/list` shows.
    pub definition: Prompt,
    /// The tool that it stands on: for an agent that does not see that, there is no such prompt either.
    pub needs: &'static [&'static str],
    /// Writes the messages.
    pub function: Box<Function>,
}
