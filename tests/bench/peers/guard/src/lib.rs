//! The guard that stands in front of a peer, so that it does what gatewren does for each call: TLS, a check of the
//! bearer token, and one row about the request in SQLite. All four peers share it.
//!
//! Where there was a choice, this is the faster form: HTTP/1.1 by hyper itself, no middleware, no policy, one token,
//! and the status as the outcome, so that no reply is read.

mod calls;
mod names;
mod service;

use std::path::PathBuf;

/// The error of a peer that cannot start.
pub type Error = Box<dyn std::error::Error>;

/// The command line of a peer: `PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]`.
pub struct Arguments {
    /// The port of loopback to serve.
    pub port: u16,
    /// The guard; without it the peer serves plain HTTP, as its documentation shows.
    pub guard: Option<Guard>,
}

/// The settings of the guard.
pub struct Guard {
    /// The chain of certificates, as PEM.
    pub(crate) certificate: PathBuf,
    /// The private key, as PEM.
    pub(crate) key: PathBuf,
    /// The only accepted token.
    pub(crate) token: String,
    /// The file of the rows, which is created.
    pub(crate) database: PathBuf,
}

impl Arguments {
    /// Reads the command line of this process.
    pub fn read() -> Result<Self, Error> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (port, guard) = match words.as_slice() {
            [port] => (port, None),
            [port, "--guarded", certificate, key, token, database] => {
                let guard = Guard {
                    certificate: certificate.into(),
                    key: key.into(),
                    token: (*token).to_owned(),
                    database: database.into(),
                };
                (port, Some(guard))
            }
            _ => return Err("PORT [--guarded CERTIFICATE KEY TOKEN DATABASE]".into()),
        };
        let port = port.parse()?;
        Ok(Self { port, guard })
    }
}
