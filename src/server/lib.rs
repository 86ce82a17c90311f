//! The MCP server: transports, dispatch, and the process that runs them with the tools and the owner's page.
#![forbid(unsafe_code)]

pub mod app;
pub mod dispatch;
pub mod transport;
