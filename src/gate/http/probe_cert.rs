//! Fetches the certificate that a server presents, without trusting it; the handshake is aborted after that.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
};

/// The timeout of the connection and of each read.
const WITHIN: Duration = Duration::from_secs(5);

/// Returns the certificate, in DER, that the server at this address presents to a client.
pub fn shown_at(address: SocketAddr) -> io::Result<Vec<u8>> {
    shown_to(ServerName::IpAddress(address.ip().into()), address)
}

/// The same for a client that asks for this name, which is a host name or an address.
pub fn shown_for(name: &str, address: SocketAddr) -> io::Result<Vec<u8>> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    shown_to(name, address)
}

fn shown_to(name: ServerName<'static>, address: SocketAddr) -> io::Result<Vec<u8>> {
    let look = Arc::new(CertificateRecorder::default());
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(look.clone())
        .with_no_client_auth();
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut socket = TcpStream::connect_timeout(&address, WITHIN)?;
    socket.set_read_timeout(Some(WITHIN))?;
    socket.set_write_timeout(Some(WITHIN))?;
    let ended = tls.complete_io(&mut socket);
    match look.0.get() {
        Some(der) => Ok(der.clone()),
        None => Err(ended
            .err()
            .unwrap_or_else(|| io::Error::other("the server sent no certificate"))),
    }
}

/// Records every certificate, then rejects it.
#[derive(Debug, Default)]
struct CertificateRecorder(OnceLock<Vec<u8>>);

impl ServerCertVerifier for CertificateRecorder {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.get_or_init(|| shown.to_vec());
        Err(verification_failure())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(verification_failure())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(verification_failure())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn verification_failure() -> Error {
    Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}
