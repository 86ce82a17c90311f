//! Completions of prompt arguments and template variables.

use serde_json::{Map, Value};

use super::resource::Viewer;

/// What is being completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// An argument of a prompt.
    Prompt(String),
    /// A variable of a resource template.
    Template(String),
}

/// What to complete: the argument's name, what was typed, and the arguments that stand already.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Of what.
    pub reference: Reference,
    /// The argument.
    pub argument: String,
    /// What was typed.
    pub typed: String,
    /// The other arguments.
    pub context: Map<String, Value>,
}

/// Offers values to who types, best first.
pub type Completer = dyn Fn(&Viewer, &Completion) -> Vec<String> + Send + Sync;
