//! A certificate that the owner supplies, with its key: read, validated, and written as one file.

use std::path::Path;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::cert_facts::CertificateFacts;
use super::pem::section;
use super::tls::{not_pem, read};
use super::tls_error::TlsError;

/// The contents of a PEM file that was already read, with its path for error messages.
#[derive(Clone, Copy)]
pub struct PemFile<'a> {
    /// The contents.
    pub pem: &'a [u8],
    /// The path.
    pub path: &'a Path,
}

/// A chain and the key that belongs to its first certificate.
pub struct OwnCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The facts of its first certificate.
    pub facts: CertificateFacts,
}

impl OwnCertificate {
    /// Reads the two files, which may be one; fails if either is invalid or they do not belong together.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain, secret) = (read("certificate", cert)?, read("key", key)?);
        let chain = PemFile {
            pem: &chain,
            path: cert,
        };
        let secret = PemFile {
            pem: &secret,
            path: key,
        };
        Self::of(chain, secret)
    }

    /// Parses a chain and its key, which may be in one file.
    pub fn of(cert: PemFile<'_>, key: PemFile<'_>) -> Result<Self, TlsError> {
        let certificates = CertificateDer::pem_slice_iter(cert.pem).collect::<Result<Vec<_>, _>>();
        let chain = certificates.map_err(|_| not_pem("certificate", cert.path))?;
        let facts = chain.first().and_then(|leaf| CertificateFacts::of(leaf));
        let facts = facts.ok_or_else(|| not_pem("certificate", cert.path))?;
        let secret =
            PrivateKeyDer::from_pem_slice(key.pem).map_err(|_| not_pem("key", key.path))?;
        let signing = any_supported_type(&secret).map_err(|_| TlsError::UnsupportedKey {
            path: key.path.to_owned(),
        })?;
        let certified = CertifiedKey::new(chain.clone(), signing);
        certified.keys_match().map_err(|_| TlsError::Mismatch {
            cert: cert.path.to_owned(),
            key: key.path.to_owned(),
        })?;
        Ok(Self {
            chain,
            key: secret,
            facts,
        })
    }

    /// Returns key and chain as PEM for one file: one rename replaces both, so the pair always matches.
    pub fn pem(&self) -> String {
        let label = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        let mut text = section(label, self.key.secret_der());
        for certificate in &self.chain {
            text.push_str(&section("CERTIFICATE", certificate));
        }
        text
    }
}
