//! Definitions of tools, resources and prompts: tables over typed functions, independent of HTTP and storage.
#![forbid(unsafe_code)]

mod added_resources;
mod alias;
mod answer;
mod caller;
mod catalog;
mod completion;
mod cx;
mod error;
mod json_words;
mod long_call;
mod output;
mod permit;
#[cfg(any(test, feature = "testing"))]
mod portable;
mod prompt;
mod resource;
mod scheduled_call;
mod schema;
mod scope;
mod session_message;
mod task;
mod tool;
mod toolset;
mod unused_arguments;

pub use added_resources::{AddedResources, CombinedResources};
pub use alias::Alias;
pub use answer::Answer;
pub use caller::Caller;
pub use catalog::{Catalog, CatalogError, LogOffer};
pub use completion::{Completion, CompletionReference};
pub use cx::{CallQuestion, Cx, ProposableTool};
pub use error::{Interruption, ProposedCall, Result, ToolError};
pub use long_call::LongCall;
pub use output::{Excerpt, Page, is_text};
pub use permit::Permit;
#[cfg(any(test, feature = "testing"))]
pub use portable::complaints;
pub use prompt::{PromptAnswer, PromptRow, PromptSkill};
pub use resource::{BoxFuture, ResourceSource, Viewer};
pub use scheduled_call::{CallCheck, CheckedCall, ScheduledCall};
pub use scope::Scope;
pub use session_message::{
    ListChange, MessageAudience, MessageContent, SessionLog, SessionMessage,
};
pub use task::TaskSupport;
pub use tool::Tool;
pub use toolset::Toolset;
pub use unused_arguments::REASON;

/// Re-exported from the settings: policies name a tool's class, and the helper's configuration names the helper
/// classes.
pub use gatewren_base::config::{Dialect, HelperClass, Risk};
