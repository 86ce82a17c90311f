//! Why a request to another server failed.

use std::fmt;
use std::io;
use std::time::Duration;

use hyper::StatusCode;

/// The timeout of a single request, from the name lookup to the last byte.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug)]
pub enum HttpClientError {
    /// The address is invalid or not allowed.
    Address(&'static str),
    /// There is no connection, so the request was not sent.
    Connection(io::Error),
    /// The response is not HTTP, or the connection was lost. The server may have received the request.
    Http(hyper::Error),
    /// The server answered with an error status.
    Status(StatusCode),
    /// The body is too large or incomplete.
    Body,
    /// The timeout expired.
    Slow,
}

impl HttpClientError {
    /// Returns why the server's certificate is not valid, if there is no connection for that reason.
    pub fn certificate_error(&self) -> Option<String> {
        let Self::Connection(cause) = self else {
            return None;
        };
        match cause.get_ref()?.downcast_ref()? {
            rustls::Error::InvalidCertificate(why) => Some(why.to_string()),
            _ => None,
        }
    }
}

impl fmt::Display for HttpClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(words) => f.write_str(words),
            Self::Connection(cause) => write!(f, "there is no connection to it: {cause}"),
            Self::Http(cause) => write!(f, "it does not speak HTTP: {cause}"),
            Self::Status(status) => write!(f, "it answered {status}, not 200"),
            Self::Body => f.write_str("its answer is too large or incomplete"),
            Self::Slow => {
                let seconds = REQUEST_TIMEOUT.as_secs();
                write!(f, "it did not answer within {seconds} s")
            }
        }
    }
}

impl std::error::Error for HttpClientError {}

impl From<io::Error> for HttpClientError {
    fn from(cause: io::Error) -> Self {
        Self::Connection(cause)
    }
}

impl From<hyper::Error> for HttpClientError {
    fn from(cause: hyper::Error) -> Self {
        Self::Http(cause)
    }
}
