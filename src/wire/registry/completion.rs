//! Completions of prompt arguments and template variables.

use serde_json::{Map, Value};

use super::resource::Viewer;

/// The object of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// An argument of a prompt.
    Prompt(String),
    /// A variable of a resource template.
    Template(String),
}

/// A completion request: the argument's name, the text typed so far, and the arguments that are already set.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The object to complete.
    pub reference: CompletionReference,
    /// The argument.
    pub argument: String,
    /// The text typed so far.
    pub typed: String,
    /// The other arguments.
    pub context: Map<String, Value>,
}

/// Returns completions for a viewer, best first.
pub type Completer = dyn Fn(&Viewer, &Completion) -> Vec<String> + Send + Sync;
