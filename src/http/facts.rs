//! What a certificate says to whoever looks at it: for whom, from when until when, and by what it is known.

use std::path::Path;

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::certificate::Certificate;
use super::pem::section;
use super::pin::Pin;
use super::subject::Subject;
use super::tls::{not_pem, read};
use super::tls_error::TlsError;

/// A certificate that was read.
#[derive(Debug)]
pub struct Facts {
    certificate: Certificate,
    der: Vec<u8>,
    /// By which a client knows its key.
    pub pin: Pin,
}

impl Facts {
    /// Those of a certificate in DER; none if it is not one.
    pub fn of(der: &[u8]) -> Option<Self> {
        Some(Self {
            certificate: Certificate::read(der)?,
            der: der.to_vec(),
            pin: Pin::of(der)?,
        })
    }

    /// Those of the first certificate in a file.
    pub fn in_file(path: &Path) -> Result<Self, TlsError> {
        let pem = read("certificate", path)?;
        Self::in_pem(&pem).ok_or_else(|| not_pem("certificate", path))
    }

    /// Those of the first certificate in PEM.
    pub fn in_pem(pem: &[u8]) -> Option<Self> {
        Self::of(&CertificateDer::from_pem_slice(pem).ok()?)
    }

    /// The certificate itself.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> String {
        section("CERTIFICATE", &self.der)
    }

    /// What it holds for, as it is written there: names, among them such as `*.example.org`, and addresses.
    pub fn names(&self) -> Vec<String> {
        let subjects = self.certificate.subjects.iter().map(ToString::to_string);
        let wild = self.certificate.wildcards.iter();
        subjects
            .chain(wild.map(|below| format!("*.{below}")))
            .collect()
    }

    /// From when it holds, in seconds since 1970.
    pub fn from(&self) -> i64 {
        self.certificate.not_before
    }

    /// Until when it holds, in seconds since 1970.
    pub fn until(&self) -> i64 {
        self.certificate.not_after
    }

    /// Its SHA-256, in pairs with colons, as systems show it.
    pub fn fingerprint(&self) -> String {
        let hash = digest(&SHA256, &self.der);
        let pairs: Vec<String> = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        pairs.join(":")
    }

    /// Whether it holds for a name or an address.
    pub fn covers(&self, subject: &Subject) -> bool {
        if self.certificate.subjects.contains(subject) {
            return true;
        }
        // A star stands for one label (RFC 9525, 6.3).
        let Subject::Name(name) = subject else {
            return false;
        };
        let above = name.split_once('.').map(|(_, above)| above);
        above.is_some_and(|above| self.certificate.wildcards.iter().any(|wild| wild == above))
    }

    /// Whether it may, as an authority, sign for a name or an address.
    pub fn permits(&self, subject: &Subject) -> bool {
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
        let facts = Facts::of(made.der()).unwrap();
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
