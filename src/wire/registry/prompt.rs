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

/// The text of a prompt for clients that read skills: the same task, and the calls that they make themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptSkill {
    /// The task for the model.
    pub task: &'static str,
    /// The tools that collect what the task needs, with their arguments; placeholders are in upper case.
    pub calls: Vec<(&'static str, Value)>,
}

/// A prompt in the catalog.
pub struct PromptRow {
    /// Its definition in `prompts/list`.
    pub definition: Prompt,
    /// The tools that it needs: an agent that does not see them does not see the prompt either.
    pub needs: &'static [&'static str],
    /// Its text as a skill; `None` if it is none.
    pub skill: Option<PromptSkill>,
    /// Writes the messages.
    pub function: Box<Function>,
}
