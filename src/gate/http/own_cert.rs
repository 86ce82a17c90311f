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
        Self::of((&chain, cert), (&secret, key))
    }

    /// Parses contents that were already read; the paths are for error messages.
    pub fn of(
        (chain, cert): (&[u8], &Path),
        (secret, key): (&[u8], &Path),
    ) -> Result<Self, TlsError> {
        let certificates = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = certificates.map_err(|_| not_pem("certificate", cert))?;
        let facts = chain.first().and_then(|leaf| CertificateFacts::of(leaf));
        let facts = facts.ok_or_else(|| not_pem("certificate", cert))?;
        let secret = PrivateKeyDer::from_pem_slice(secret).map_err(|_| not_pem("key", key))?;
        let signing = any_supported_type(&secret).map_err(|_| TlsError::UnsupportedKey {
            path: key.to_owned(),
        })?;
        let certified = CertifiedKey::new(chain.clone(), signing);
        certified.keys_match().map_err(|_| TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
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
