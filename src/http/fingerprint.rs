//! The fingerprint of a certificate, as systems and `openssl x509 -fingerprint -sha256` show it.

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The SHA-256 of a certificate in DER, in pairs with colons.
pub fn fingerprint(der: &[u8]) -> String {
    let hash = digest(&SHA256, der);
    let pairs: Vec<String> = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    pairs.join(":")
}

/// The same of the first certificate in a PEM file's text; none where there is none.
pub fn fingerprint_of_pem(pem: &[u8]) -> Option<String> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    Some(fingerprint(&der))
}
