//! A prompt: its definition and the function that writes its messages.

use serde_json::{Map, Value};

use super::{cx::Cx, error::Result, resource::BoxFuture};
use crate::protocol::{Prompt, PromptMessage};

type Function = dyn Fn(Map<String, Value>, Cx) -> BoxFuture<Result<PromptAnswer>> + Send + Sync;

/// The result of `prompts/get`.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptAnswer {
    /// A description of the prompt.
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<PromptMessage>,
}

/// A prompt in the catalog.
pub struct PromptRow {
    /// Its definition in `prompts/list`.
    pub definition: Prompt,
    /// The tools that it needs: an agent that does not see them does not see the prompt either.
    pub needs: &'static [&'static str],
    /// Writes the messages.
    pub function: Box<Function>,
}
