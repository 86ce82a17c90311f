//! From the socket to a request and back: TLS, connections, replies. Knows nothing of MCP.
#![forbid(unsafe_code)]

mod admission;
mod authority;
mod body;
mod cert_facts;
mod certificate;
mod client;
mod connection;
mod fetch;
mod first_head;
mod idle;
mod issue;
mod listen;
mod own_cert;
mod pem;
mod penalties;
mod pin;
mod probe_cert;
mod queue;
mod reply;
mod server_trust;
mod sse;
mod sse_writer;
mod subject;
mod take_connection;
mod tls;
mod tls_error;
mod upload;
mod wire;

pub use admission::{Connected, ConnectionLimits, ConnectionSource, Connections, Presence};
pub use body::Body;
pub use cert_facts::Facts;
pub use client::{Outward, OutwardError, Plain, is_local};
pub use connection::{Server, Timeouts};
pub use fetch::{fetch, fetch_public};
pub use listen::{AcceptedConnection, ListenError, accept, bind, inherit};
pub use own_cert::Given;
pub use pin::{Pin, PinStart};
pub use probe_cert::shown_at;
pub use reply::{empty, events, json, json_in_parts, text};
pub use server_trust::Known;
pub use sse::{Closed, EventSender};
pub use subject::{InvalidSubject, Subject, Subjects};
pub use tls::{Tls, TlsSource};
pub use upload::Upload;
pub use wire::{Remote, Wire, WireError};
