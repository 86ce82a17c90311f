//! TLS for the listener: a certificate that can be exchanged while connections are open.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;

use super::authority::{Authority, AuthorityError};
use super::certificate::Certificate;
use super::subject::{Subject, Subjects};
use crate::sys::{FileError, files};

/// The largest certificate chain or key; a larger file is refused.
const MAX_PEM_BYTES: usize = 1 << 20;

/// What we speak inside TLS, the preferred first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum TlsSource {
    /// An authority of our own, with its files in a directory that is made if need be.
    Own {
        /// The directory, `tls` in the state directory.
        directory: PathBuf,
        /// What the certificate is to hold for.
        subjects: Subjects,
    },
    /// Two files of somebody else's making.
    Files {
        /// The chain as PEM, leaf first.
        cert: PathBuf,
        /// The key as PEM.
        key: PathBuf,
    },
}

/// Why there is no TLS.
#[derive(Debug)]
pub enum TlsError {
    /// Our own authority gives no certificate.
    Authority(AuthorityError),
    /// A file that was named does not exist.
    Missing {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file that was named cannot be read.
    Unreadable(FileError),
    /// There is no such thing in the file.
    NotPem {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Others than its owner may read the key.
    OpenKey {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key is not the certificate's.
    Mismatch {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The key is of a kind that TLS here does not know.
    UnsupportedKey {
        /// The file.
        path: PathBuf,
    },
    /// TLS itself could not be set up.
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
            Self::Unreadable(cause) => write!(
                f,
                "{cause}; it must be readable by the user that gatewren runs as"
            ),
            Self::NotPem { what, path } => write!(
                f,
                "there is no {what} in {}; it must be PEM, with a line -----BEGIN …-----",
                path.display()
            ),
            Self::OpenKey { path, mode } => write!(
                f,
                "others than its owner may read the key {path} (mode {mode:04o}); run: chmod 600 \
                 {path}",
                path = path.display()
            ),
            Self::Mismatch { cert, key } => write!(
                f,
                "the key {} does not belong to the certificate {}; name the pair that belongs \
                 together, with the server's own certificate first in its file",
                key.display(),
                cert.display()
            ),
            Self::UnsupportedKey { path } => write!(
                f,
                "the key {} is of no known kind; use ECDSA P-256 or P-384, Ed25519, or RSA from \
                 2048 bits",
                path.display()
            ),
            Self::Setup(cause) => write!(f, "TLS could not be set up: {cause}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// The server's side of TLS.
pub struct Tls {
    source: Mutex<TlsSource>,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Makes or reads the certificate. TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, session tickets.
    pub fn load(source: TlsSource) -> Result<Self, TlsError> {
        let current = Arc::new(Current(RwLock::new(Served::from(&source)?)));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Setup)?;
        Ok(Self {
            source: Mutex::new(source),
            current,
            config: Arc::new(config),
        })
    }

    /// Looks at the source again: renews what soon expires, reads what was exchanged. New
    /// connections get the new certificate; after an error they still get the old one.
    pub fn reload(&self) -> Result<(), TlsError> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.replace(Served::from(&source)?);
        Ok(())
    }

    /// The same from another source: other settings, or other names and addresses of the box.
    pub fn reload_from(&self, other: TlsSource) -> Result<(), TlsError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.replace(Served::from(&other)?);
        *source = other;
        Ok(())
    }

    /// What accepts connections; good for as long as this is, also after a reload.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// The certificate for clients to trust, when it is our own authority's.
    pub fn ca(&self) -> Option<PathBuf> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match &*source {
            TlsSource::Own { directory, .. } => Some(Authority::at(directory).ca),
            TlsSource::Files { .. } => None,
        }
    }

    /// What the certificate in use holds for.
    pub fn subjects(&self) -> Vec<Subject> {
        self.current.read(|served| served.subjects.clone())
    }

    /// Until when the certificate in use holds, in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.current.read(|served| served.not_after)
    }
}

/// The certificate in use.
#[derive(Debug)]
struct Current(RwLock<Served>);

#[derive(Debug)]
struct Served {
    certified: Arc<CertifiedKey>,
    subjects: Vec<Subject>,
    not_after: i64,
}

impl Current {
    fn read<T>(&self, look: impl FnOnce(&Served) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, served: Served) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = served;
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.read(|served| Arc::clone(&served.certified)))
    }
}

impl Served {
    fn from(source: &TlsSource) -> Result<Self, TlsError> {
        match source {
            TlsSource::Own {
                directory,
                subjects,
            } => {
                let authority = Authority::at(directory);
                authority
                    .ensure(subjects, OffsetDateTime::now_utc())
                    .map_err(TlsError::Authority)?;
                Self::read(&authority.cert, &authority.key)
            }
            TlsSource::Files { cert, key } => Self::read(cert, key),
        }
    }

    fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = chain(cert)?;
        let leaf = chain.first().and_then(|leaf| Certificate::read(leaf));
        let leaf = leaf.ok_or_else(|| not_pem("certificate", cert))?;
        let certified = CertifiedKey::new(chain, signing_key(key)?);
        certified.keys_match().map_err(|_| TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
        })?;
        if leaf.not_after <= OffsetDateTime::now_utc().unix_timestamp() {
            tracing::warn!(cert = %cert.display(), "the certificate has expired; clients will refuse it");
        }
        Ok(Self {
            certified: Arc::new(certified),
            subjects: leaf.subjects,
            not_after: leaf.not_after,
        })
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read("certificate", path)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| not_pem("certificate", path))?;
    if chain.is_empty() {
        return Err(not_pem("certificate", path));
    }
    Ok(chain)
}

fn signing_key(path: &Path) -> Result<Arc<dyn rustls::sign::SigningKey>, TlsError> {
    let pem = read("key", path)?;
    let mode = files::mode(path).map_err(TlsError::Unreadable)?;
    if mode & 0o077 != 0 {
        let path = path.to_owned();
        return Err(TlsError::OpenKey { path, mode });
    }
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| not_pem("key", path))?;
    ring::sign::any_supported_type(&key).map_err(|_| TlsError::UnsupportedKey {
        path: path.to_owned(),
    })
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    files::read_bounded(path, MAX_PEM_BYTES).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => TlsError::Missing {
            what,
            path: path.to_owned(),
        },
        _ => TlsError::Unreadable(cause),
    })
}

fn not_pem(what: &'static str, path: &Path) -> TlsError {
    TlsError::NotPem {
        what,
        path: path.to_owned(),
    }
}
