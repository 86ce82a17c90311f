//! The HTTP client: TLS verified by a pin or an authority, limits and timeouts, on every system. Knows nothing of MCP.
#![forbid(unsafe_code)]

mod address_guard;
mod client;
mod client_error;
mod pin;
mod server_trust;
mod trusted_roots;

pub use address_guard::{AllowedServers, is_local, watched_addresses};
pub use client::{HttpClient, HttpConnection, HttpReply, bearer};
pub use client_error::HttpClientError;
pub use pin::{Pin, PinPrefix};
pub use server_trust::{PinnedServer, ServerVerification};
