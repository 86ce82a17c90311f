//! Connects a client on standard input and output to a remote gatewren; handles only the MCP that forwarding needs.
#![forbid(unsafe_code)]

mod answer;
mod code;
mod command;
mod events;
mod headers;
mod link;
mod listen;
mod output;
mod pairing;
mod peek;
mod renew;
mod request_error;
mod run;
mod server;
mod stateful;
mod stateless;
mod stream;

pub use code::{PairingCode, PairingLink, with_port};
pub use command::{BridgeArgs, relay};
