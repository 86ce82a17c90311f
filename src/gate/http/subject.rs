//! The subject of a certificate: a host name or an address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A host name in lower case, or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateSubject {
    /// A host name without a trailing dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// The subjects that a certificate should cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateSubjects {
    /// Subjects from the settings: failing to cover one is an error.
    pub asked: Vec<CertificateSubject>,
    /// Subjects detected on the host: one that cannot be covered is skipped and logged.
    pub found: Vec<CertificateSubject>,
}

/// A text that is neither a host name nor an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidCertificateSubject(String);

impl fmt::Display for InvalidCertificateSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a host name nor an address", self.0)
    }
}

impl std::error::Error for InvalidCertificateSubject {}

impl CertificateSubject {
    /// The subjects that every certificate of gatewren covers.
    pub fn always() -> [Self; 3] {
        [
            Self::Name("localhost".to_owned()),
            Self::Address(Ipv4Addr::LOCALHOST.into()),
            Self::Address(Ipv6Addr::LOCALHOST.into()),
        ]
    }
}

impl FromStr for CertificateSubject {
    type Err = InvalidCertificateSubject;

    fn from_str(text: &str) -> Result<Self, InvalidCertificateSubject> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let label = |label: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            (1..=63).contains(&label.len()) && label.bytes().all(fits)
        };
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() <= 253 && name.split('.').all(label) {
            Ok(Self::Name(name.to_ascii_lowercase()))
        } else {
            Err(InvalidCertificateSubject(text.to_owned()))
        }
    }
}

impl fmt::Display for CertificateSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_apart() {
        assert_eq!(
            "Box.LAN.".parse(),
            Ok(CertificateSubject::Name("box.lan".to_owned()))
        );
        assert_eq!(
            "::1".parse(),
            Ok(CertificateSubject::Address(Ipv6Addr::LOCALHOST.into()))
        );
        for bad in ["", ".", "a b", "box:8443", "[::1]", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<CertificateSubject>().is_err(), "{bad:?}");
        }
    }
}
