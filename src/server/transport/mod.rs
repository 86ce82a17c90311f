//! Streamable HTTP and stdio for both eras: turns input into calls, and replies into output.
#![forbid(unsafe_code)]

mod answered;
mod batch;
mod call_stream;
mod claims;
mod dozing;
mod ending;
mod endpoint;
mod event_id;
mod handshake;
mod headers;
mod http_sse;
mod in_flight;
mod kept;
mod known;
mod link;
mod lookup;
mod methods;
mod open_sessions;
mod pulse;
mod question;
mod relay;
mod replay;
mod running;
mod session;
mod session_stream;
mod sessions;
mod stateful;
mod stateless;
mod stdio;
mod stream;
mod verbs;
mod wire;

pub use answered::Answered;
pub use endpoint::Endpoint;
pub use http_sse::HttpSse;
pub use link::Ended;
pub use sessions::{SessionStore, Sessions};
pub use stdio::serve as serve_stdio;

#[cfg(feature = "testing")]
pub use {
    claims::Claims, event_id::EventId, headers::check as check_headers, stdio::lines_of,
    stream::Accepts,
};
