//! From the socket to a request and back: TLS, connections, replies. Knows nothing of MCP.
#![forbid(unsafe_code)]

mod admission;
mod authority;
mod body;
mod carried;
mod certificate;
mod connection;
mod facts;
mod fetch;
mod first_head;
mod given;
mod handover;
mod issue;
mod known;
mod listen;
mod open;
mod outward;
mod pem;
mod penalties;
mod pin;
mod queue;
mod reply;
mod shown;
mod sse;
mod subject;
mod tls;
mod tls_error;
mod upload;
mod wire;

pub use admission::{Connected, ConnectionLimits, ConnectionSource, Connections, Presence};
pub use body::Body;
pub use connection::{Server, Timeouts};
pub use facts::Facts;
pub use fetch::{fetch, fetch_public};
pub use given::Given;
pub use known::Known;
pub use listen::{AcceptedConnection, ListenError, accept, bind, inherit};
pub use outward::{Outward, OutwardError, Plain, is_local};
pub use pin::{Pin, PinStart};
pub use reply::{empty, events, json, json_in_parts, text};
pub use shown::shown_at;
pub use sse::{Closed, EventSender};
pub use subject::{InvalidSubject, Subject, Subjects};
pub use tls::{Tls, TlsSource};
pub use upload::Upload;
pub use wire::{Remote, Wire, WireError};
