//! How a client of this module verifies a server: by the pin of its key, or by the host's trusted authorities.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::pin::{Pin, PinPrefix};
use super::trusted_roots::trusted;
use gatewren_portable::files;

/// The maximum number of certificates of a chain that are searched for the pin.
const MAX_CHAIN: usize = 8;

/// The maximum size of a file with an authority's certificate.
const MAX_AUTHORITY: usize = 64 << 10;

/// How a server is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerVerification {
    /// The pin of its key, or of the key of the authority that signed its certificate, begins with this. Its name
    /// is not checked: the server is identified by the key, whatever name it is reached by.
    Pin(PinPrefix),
    /// An authority that the host trusts has signed for its name.
    Machine,
    /// The authority in this file has signed for its name.
    Authority(PathBuf),
}

impl ServerVerification {
    /// Returns the TLS configuration.
    pub(super) fn config(&self) -> io::Result<Arc<ClientConfig>> {
        match self {
            Self::Machine => config_with_roots(trusted()),
            Self::Authority(file) => config_with_roots(authority_of(file)?),
            Self::Pin(start) => {
                let verifier = PinnedServer::new(*start);
                let config = ClientConfig::builder_with_provider(verifier.1.clone())
                    .with_safe_default_protocol_versions()
                    .map_err(io::Error::other)?
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
                    .with_no_client_auth();
                Ok(Arc::new(config))
            }
        }
    }
}

/// Reads the one authority in a file.
fn authority_of(file: &Path) -> io::Result<RootCertStore> {
    let pem = files::read_bounded(file, MAX_AUTHORITY).map_err(io::Error::other)?;
    let authority = CertificateDer::from_pem_slice(&pem).map_err(io::Error::other)?;
    let mut roots = RootCertStore::empty();
    roots.add(authority).map_err(io::Error::other)?;
    Ok(roots)
}

/// Returns a TLS configuration that trusts these authorities.
fn config_with_roots(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    if roots.is_empty() {
        let words = "the server trusts no certificate authority; install ca-certificates";
        return Err(io::Error::other(words));
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

/// Verifies a server by its pin.
#[derive(Debug)]
pub struct PinnedServer(PinPrefix, Arc<CryptoProvider>);

impl PinnedServer {
    /// Creates the verifier for a pin, or the beginning of one.
    pub fn new(start: PinPrefix) -> Self {
        Self(start, Arc::new(ring::default_provider()))
    }

    fn is_pinned(&self, certificate: &CertificateDer<'_>) -> bool {
        Pin::of(certificate).is_some_and(|pin| self.0.begins(&pin))
    }

    /// Verifies that the pinned authority has signed the leaf, that the leaf has not expired, and that its names
    /// are permitted.
    fn verify_signed(
        &self,
        leaf: &CertificateDer<'_>,
        authority: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let leaf = ParsedCertificate::try_from(leaf)?;
        let algorithms = self.1.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &[], now, algorithms)
    }
}

impl ServerCertVerifier for PinnedServer {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The handshake proves possession of the key, and a key does not expire.
        if self.is_pinned(leaf) {
            return Ok(ServerCertVerified::assertion());
        }
        let mut others = others.iter().take(MAX_CHAIN);
        let Some(authority) = others.find(|other| self.is_pinned(other)) else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        self.verify_signed(leaf, authority, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.1.signature_verification_algorithms;
        verify_tls12_signature(message, leaf, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.1.signature_verification_algorithms;
        verify_tls13_signature(message, leaf, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.1.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_authority_nothing_is_trusted() {
        assert!(config_with_roots(RootCertStore::empty()).is_err());
    }
}
