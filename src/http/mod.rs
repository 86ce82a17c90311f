//! Socket, TLS, request and back; knows no MCP.
#![forbid(unsafe_code)]

mod body;
mod connection;
mod listen;
mod reply;
mod sse;

pub use body::Body;
pub use connection::{Handler, Server, Timeouts};
pub use listen::{ConnectionCap, ListenError, bind, inherit};
pub use reply::{empty, events, json};
pub use sse::{Closed, EventSender};
