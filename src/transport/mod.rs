//! Streamable HTTP in both eras: from an admitted request to a call, from a reply to a response.
#![forbid(unsafe_code)]

mod batch;
mod call_stream;
mod claims;
mod endpoint;
mod event_id;
mod headers;
mod kept;
mod known;
mod lookup;
mod methods;
mod pulse;
mod question;
mod replay;
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

#[cfg(feature = "fuzzing")]
pub use {claims::Claims, headers::check as check_headers, stream::Accepts};
