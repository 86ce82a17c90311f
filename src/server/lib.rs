//! The MCP server: transports, dispatch, tools, the owner's page, and the process that runs them.
#![forbid(unsafe_code)]

pub mod app;
pub mod dispatch;
pub mod notify;
pub mod owner;
pub mod tool_texts;
pub mod toolsets;
pub mod transport;
pub mod watches;
