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
use gatewren_base::sys::files;

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
                let provider = Arc::new(ring::default_provider());
                let verifier = ByPin(*start, provider.clone());
                let config = ClientConfig::builder_with_provider(provider)
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

/// Loads the authorities that the host trusts; not cached, because it is rarely needed.
fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
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
struct ByPin(PinPrefix, Arc<CryptoProvider>);

impl ByPin {
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

impl ServerCertVerifier for ByPin {
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
    use super::super::issue::{self, IssuedCertificate};
    use super::super::subject::CertificateSubject;
    use super::*;
    use time::{Duration, OffsetDateTime};

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn leaf(
        authority: &IssuedCertificate,
        name: &str,
        now: OffsetDateTime,
    ) -> CertificateDer<'static> {
        let subjects: [CertificateSubject; 1] = [name.parse().unwrap()];
        der(&issue::server(authority, &subjects, now).unwrap().cert)
    }

    fn is_accepted(
        pinned: &CertificateDer<'_>,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> bool {
        let start = PinPrefix::from(Pin::of(pinned).unwrap());
        let verifier = ByPin(start, Arc::new(ring::default_provider()));
        let name = ServerName::try_from("another.name").unwrap();
        let now = UnixTime::now();
        verifier
            .verify_server_cert(leaf, others, &name, &[], now)
            .is_ok()
    }

    #[test]
    fn without_an_authority_nothing_is_trusted() {
        assert!(config_with_roots(RootCertStore::empty()).is_err());
    }

    #[test]
    fn a_pin_is_of_the_leaf_or_of_who_has_signed_for_it() {
        let now = OffsetDateTime::now_utc();
        let names = ["box.lan".parse().unwrap()];
        let authority = issue::authority(&names, now).unwrap();
        let other = issue::authority(&names, now).unwrap();
        let (ours, theirs) = (der(&authority.cert), der(&other.cert));
        let good = leaf(&authority, "box.lan", now);
        let forged = leaf(&other, "box.lan", now);
        let late = leaf(&authority, "box.lan", now - Duration::days(100));
        let outside = leaf(&authority, "bank.example", now);
        let own = std::slice::from_ref(&ours);

        assert!(is_accepted(&ours, &good, own), "signed by what is pinned");
        assert!(is_accepted(&good, &good, &[]), "pinned itself");
        assert!(is_accepted(&late, &late, &[]), "a key does not expire");
        assert!(
            !is_accepted(&ours, &good, &[]),
            "the authority was not sent"
        );
        assert!(
            !is_accepted(&ours, &forged, own),
            "sent, but it has not signed"
        );
        assert!(!is_accepted(
            &ours,
            &forged,
            &[theirs.clone(), ours.clone()]
        ));
        assert!(!is_accepted(&theirs, &good, own), "another pin");
        assert!(
            !is_accepted(&ours, &late, own),
            "what was signed has expired"
        );
        assert!(
            !is_accepted(&ours, &outside, own),
            "it may not sign for that"
        );
        let mut many = vec![theirs; MAX_CHAIN];
        many.push(ours.clone());
        assert!(!is_accepted(&ours, &good, &many), "too long a chain");
    }
}
