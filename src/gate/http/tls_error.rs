//! TLS errors, with messages that state the remedy.

use std::fmt;
use std::path::PathBuf;

use super::authority::AuthorityError;
use gatewren_base::sys::FileError;

/// Why TLS is not available.
#[derive(Debug)]
pub enum TlsError {
    /// The own authority cannot provide a certificate.
    Authority(AuthorityError),
    /// A configured file does not exist.
    Missing {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The own authority does not exist yet.
    NotMade {
        /// The path that its certificate will have.
        ca: PathBuf,
    },
    /// A configured file cannot be read.
    Unreadable(FileError),
    /// The file contains no such PEM section.
    NotPem {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Users other than its owner can read the key.
    OpenKey {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key does not belong to the certificate.
    Mismatch {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The kind of key is not supported.
    UnsupportedKey {
        /// The file.
        path: PathBuf,
    },
    /// TLS could not be configured.
    Setup(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(cause) => cause.fmt(f),
            Self::Missing { what, path } => write!(
                f,
                "the {what} {} does not exist; correct tls.cert and tls.key, or set tls.mode = \
                 \"own\"",
                path.display()
            ),
            Self::NotMade { ca } => write!(
                f,
                "{} does not exist yet; start gatewren once to create the certificate",
                ca.display()
            ),
            Self::Unreadable(cause) => write!(
                f,
                "{cause}; it must be readable by the user that gatewren runs as"
            ),
            Self::NotPem { what, path } => write!(
                f,
                "found no {what} in {}; it must be PEM, with a line -----BEGIN …-----",
                path.display()
            ),
            Self::OpenKey { path, mode } => write!(
                f,
                "other users can read the key {path} (mode {mode:04o}); run: chmod 600 {path}",
                path = path.display()
            ),
            Self::Mismatch { cert, key } => write!(
                f,
                "the key {} does not match the certificate {}; configure a matching pair, with the server's own \
                 certificate first in its file",
                key.display(),
                cert.display()
            ),
            Self::UnsupportedKey { path } => write!(
                f,
                "the key {} has an unsupported type; use ECDSA P-256 or P-384, Ed25519, or RSA of at least 2048 \
                 bits",
                path.display()
            ),
            Self::Setup(cause) => write!(f, "TLS setup failed: {cause}"),
        }
    }
}

impl std::error::Error for TlsError {}
