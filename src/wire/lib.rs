//! What is exchanged: MCP's messages, the tables of tools and resources, and the helper's operations.
#![forbid(unsafe_code)]

pub mod operations;
pub mod registry;

pub use gatewren_protocol as protocol;
