//! What a tool, a resource and a prompt are: tables over typed functions, knowing no HTTP and no store.
#![forbid(unsafe_code)]

mod answer;
mod catalog;
mod completion;
mod cx;
mod error;
mod output;
mod permit;
mod prompt;
mod resource;
mod schema;
mod scope;
mod task;
mod tool;
mod toolset;

pub use answer::Answer;
pub use catalog::{Catalog, CatalogError, ListChange, SessionLog};
pub use completion::{Completion, Reference};
pub use cx::{Caller, Cx, Offer, Question};
pub use error::{Interruption, ProposedCall, Result, ToolError};
pub use output::{Excerpt, Page, is_text};
pub use permit::Permit;
pub use prompt::{PromptAnswer, PromptRow};
pub use resource::{BoxFuture, ResourceSource, Viewer};
pub use scope::Scope;
pub use task::TaskSupport;
pub use tool::Tool;
pub use toolset::Toolset;

/// A tool's class is a word of policies, and what it needs of the helper one of its owner's file: both are settings.
pub use crate::config::{HelperClass, Risk};
