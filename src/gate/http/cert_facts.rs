//! The public facts of a certificate: names, validity, fingerprint and pin.

use std::path::Path;

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::certificate::Certificate;
use super::pem::section;
use super::subject::CertificateSubject;
use super::tls::{not_pem, read};
use super::tls_error::TlsError;
use gatewren_http_client::Pin;

/// A parsed certificate.
#[derive(Debug)]
pub struct CertificateFacts {
    certificate: Certificate,
    der: Vec<u8>,
    /// The pin of its key.
    pub pin: Pin,
}

impl CertificateFacts {
    /// Parses a certificate in DER; `None` if it is not one.
    pub fn of(der: &[u8]) -> Option<Self> {
        Some(Self {
            certificate: Certificate::read(der)?,
            der: der.to_vec(),
            pin: Pin::of(der)?,
        })
    }

    /// Reads the first certificate of a PEM file.
    pub fn in_file(path: &Path) -> Result<Self, TlsError> {
        let pem = read("certificate", path)?;
        Self::in_pem(&pem).ok_or_else(|| not_pem("certificate", path))
    }

    /// Parses the first certificate in PEM.
    pub fn in_pem(pem: &[u8]) -> Option<Self> {
        Self::of(&CertificateDer::from_pem_slice(pem).ok()?)
    }

    /// The certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> String {
        section("CERTIFICATE", &self.der)
    }

    /// The names and addresses that it covers, as written in it; names can be wildcards such as `*.example.org`.
    pub fn names(&self) -> Vec<String> {
        let subjects = self.certificate.subjects.iter().map(ToString::to_string);
        let wild = self.certificate.wildcards.iter();
        subjects
            .chain(wild.map(|below| format!("*.{below}")))
            .collect()
    }

    /// The start of its validity, in seconds since 1970.
    pub fn from(&self) -> i64 {
        self.certificate.not_before
    }

    /// The end of its validity, in seconds since 1970.
    pub fn until(&self) -> i64 {
        self.certificate.not_after
    }

    /// Its SHA-256 as pairs of digits with colons, as operating systems show it.
    pub fn fingerprint(&self) -> String {
        let hash = digest(&SHA256, &self.der);
        let pairs: Vec<String> = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        pairs.join(":")
    }

    /// Whether it covers a name or an address.
    pub fn covers(&self, subject: &CertificateSubject) -> bool {
        if self.certificate.subjects.contains(subject) {
            return true;
        }
        // A wildcard matches one label (RFC 9525, 6.3).
        let CertificateSubject::Name(name) = subject else {
            return false;
        };
        let above = name.split_once('.').map(|(_, above)| above);
        above.is_some_and(|above| self.certificate.wildcards.iter().any(|wild| wild == above))
    }

    /// Whether it, as an authority, may sign for a name or an address.
    pub fn permits(&self, subject: &CertificateSubject) -> bool {
        self.certificate.permits(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    #[test]
    fn a_star_stands_for_one_label() {
        let key = KeyPair::generate().unwrap();
        let names = ["*.home.example.org", "box.example.org", "192.168.1.2"];
        let params = CertificateParams::new(names.map(str::to_owned)).unwrap();
        let made = params.self_signed(&key).unwrap();
        let facts = CertificateFacts::of(made.der()).unwrap();
        let mut shown = facts.names();
        shown.sort();
        assert_eq!(
            shown,
            ["*.home.example.org", "192.168.1.2", "box.example.org"]
        );
        for (name, covered) in [
            ("box.home.example.org", true),
            ("home.example.org", false),
            ("a.box.home.example.org", false),
            ("box.example.org", true),
            ("a.box.example.org", false),
            ("192.168.1.2", true),
            ("192.168.1.3", false),
            ("localhost", false),
        ] {
            assert_eq!(facts.covers(&name.parse().unwrap()), covered, "{name}");
        }
    }
}
