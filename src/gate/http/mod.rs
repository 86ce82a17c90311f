//! From the socket to a request and back: TLS, connections, replies. Knows nothing of MCP.
#![forbid(unsafe_code)]

mod admission;
mod authority;
mod body;
mod cert_facts;
mod certificate;
mod connection;
mod event_stream;
mod fetch;
mod first_head;
mod http2;
mod idle;
mod issue;
mod listen;
mod own_cert;
mod pem;
mod penalties;
mod plain_http;
mod preread;
mod probe_cert;
mod repeated_header;
mod reply;
mod subject;
mod tls;
mod tls_error;
mod upload;

pub use admission::{
    ConnectionLimits, ConnectionSource, ConnectionState, Connections, OpenConnection,
};
pub use body::ResponseBody;
pub use cert_facts::CertificateFacts;
pub use connection::{HttpServer, Timeouts};
pub use event_stream::{EventSender, StreamClosed};
pub use fetch::fetch;
pub use gatewren_http_client::{
    AllowedServers, HttpClient, HttpClientError, HttpConnection, HttpReply, Pin, PinPrefix,
    ServerVerification, bearer, is_local, watched_addresses,
};
pub use listen::{AcceptedConnection, ListenError, accept, bind, inherit};
pub use own_cert::{OwnCertificate, PemFile};
pub use probe_cert::{shown_at, shown_for};
pub use repeated_header::RepeatedHeader;
pub use reply::{empty, events, json, json_in_parts, text};
pub use subject::{CertificateSubject, CertificateSubjects, InvalidCertificateSubject};
pub use tls::{TlsServer, TlsSource};
pub use upload::Upload;
