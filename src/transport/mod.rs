//! Streamable HTTP in both eras: from an admitted request to a call, from a reply to a response.
#![forbid(unsafe_code)]

mod batch;
mod claims;
mod endpoint;
mod headers;
mod known;
mod lookup;
mod methods;
mod question;
mod running;
mod session;
mod session_stream;
mod sessions;
mod stateful;
mod stateless;
mod stream;
mod verbs;
mod wire;

pub use endpoint::Endpoint;
pub use sessions::Sessions;
