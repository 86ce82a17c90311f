//! From the socket to a request and back: TLS, connections, replies. Knows nothing of MCP.
#![forbid(unsafe_code)]

mod authority;
mod certificate;
mod issue;
mod subject;
mod tls;

pub use authority::AuthorityError;
pub use subject::{InvalidSubject, Subject, Subjects};
pub use tls::{Tls, TlsError, TlsSource};
