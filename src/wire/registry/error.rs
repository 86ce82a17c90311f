//! How a tool ends without an answer: an error for the model, a question for the person, or a protocol error.

use std::fmt;

use serde_json::{Map, Value};

use crate::protocol::{InputRequired, RpcError};

/// The result of a tool.
pub type Result<T> = std::result::Result<T, Interruption>;

/// An error for the model: what failed, what to do, and whether a retry may help. It never contains a path, a
/// backtrace or another agent's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// What failed.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retry: bool,
    /// Whether the call's target does not exist, or is not visible to the caller.
    pub absent: bool,
}

impl ToolError {
    /// An error that a retry does not fix.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            retry: false,
            absent: false,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n{hint}")?;
        }
        if self.retry {
            f.write_str("\nThe same call may succeed later.")?;
        }
        Ok(())
    }
}

/// A call that another party must decide on.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The reason, as the agent gave it.
    pub reason: String,
}

/// Why a call has no answer yet, or none at all.
#[derive(Debug)]
pub enum Interruption {
    /// The call failed: a result with `isError`.
    Failed(ToolError),
    /// The call first needs answers from the person at the client.
    Ask(InputRequired),
    /// The call proposes another call to the owner.
    Propose(ProposedCall),
    /// A protocol error.
    Rpc(RpcError),
}

impl From<ToolError> for Interruption {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl From<InputRequired> for Interruption {
    fn from(asked: InputRequired) -> Self {
        Self::Ask(asked)
    }
}

impl From<RpcError> for Interruption {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
