//! Streamable HTTP and stdio for both eras: turns input into calls, and replies into output.
#![forbid(unsafe_code)]

mod batch;
mod call_stream;
mod duplex;
mod endpoint;
mod handshake;
mod headers;
mod http_sse;
mod in_flight;
mod keepalive;
mod methods;
mod question;
mod relay;
mod response_end;
mod response_future;
mod routes;
mod running;
mod sessions;
mod stateful;
mod stateless;
mod stdio;
mod stream;
mod subscription;
mod unresumable_call;
mod wire;

pub use duplex::DisconnectReason;
pub use endpoint::Endpoint;
pub use http_sse::HttpSse;
pub use response_future::RequestAnswer;
pub use sessions::registry::Sessions;
pub use sessions::session_store::SessionStore;
pub use stdio::serve as serve_stdio;

#[cfg(feature = "testing")]
pub use headers::check as check_headers;
#[cfg(feature = "testing")]
pub use sessions::event_id::EventId;
#[cfg(feature = "testing")]
pub use sessions::session_token::SessionClaims;
#[cfg(feature = "testing")]
pub use stdio::lines_of;
#[cfg(feature = "testing")]
pub use stream::AcceptedForms;
