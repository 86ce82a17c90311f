//! What agents call and read: the toolsets, with the watches, the messages to the owner, and what the owner reads about
//! each tool.
#![forbid(unsafe_code)]

pub mod notify;
pub mod tool_texts;
pub mod toolsets;
pub mod watches;
