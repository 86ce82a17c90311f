//! Reads a certificate: its validity, its subjects, its issuer and its name constraints.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, GeneralSubtree};
use x509_parser::prelude::FromDer as _;

use super::subject::CertificateSubject;

/// A parsed certificate.
#[derive(Debug)]
pub(super) struct Certificate {
    der: Vec<u8>,
    /// The start of its validity, in seconds since 1970.
    pub not_before: i64,
    /// The end of its validity, in seconds since 1970.
    pub not_after: i64,
    /// The names and addresses that it covers.
    pub subjects: Vec<CertificateSubject>,
    /// The parents of wildcard names: `example.org` for `*.example.org`.
    pub wildcards: Vec<String>,
    /// The subjects it may sign for, if it has name constraints.
    pub permitted: Option<Vec<NameConstraint>>,
}

/// One name constraint of an authority (RFC 5280, 4.2.1.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameConstraint {
    /// A name and its subdomains.
    Below(String),
    /// IPv4 addresses that equal the first where the second, the mask, has ones.
    V4(Ipv4Addr, Ipv4Addr),
    /// The same for IPv6.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Certificate {
    /// Parses a certificate; `None` if the bytes are not one.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
        let (_, read) = X509Certificate::from_der(der).ok()?;
        let names = read.subject_alternative_name().ok()?;
        let names: Vec<_> = names
            .into_iter()
            .flat_map(|names| &names.value.general_names)
            .collect();
        let constraints = read.name_constraints().ok()?;
        let permitted = constraints.and_then(|found| found.value.permitted_subtrees.as_ref());
        Some(Self {
            not_before: read.validity().not_before.timestamp(),
            not_after: read.validity().not_after.timestamp(),
            subjects: names.iter().filter_map(|name| subject(name)).collect(),
            wildcards: names.iter().filter_map(|name| wildcard(name)).collect(),
            permitted: permitted.map(|parts| parts.iter().filter_map(part).collect()),
            der: der.to_vec(),
        })
    }

    /// Whether another certificate's key has signed this one.
    pub(super) fn is_signed_by(&self, authority: &Self) -> bool {
        let ours = X509Certificate::from_der(&self.der);
        let theirs = X509Certificate::from_der(&authority.der);
        let (Ok((_, ours)), Ok((_, theirs))) = (ours, theirs) else {
            return false;
        };
        ours.issuer().as_raw() == theirs.subject().as_raw()
            && ours.verify_signature(Some(theirs.public_key())).is_ok()
    }

    /// Whether this certificate, as an authority, may sign for a subject.
    pub(super) fn permits(&self, subject: &CertificateSubject) -> bool {
        let Some(permitted) = &self.permitted else {
            return true;
        };
        permitted.iter().any(|part| part.covers(subject))
    }
}

impl NameConstraint {
    /// Whether the constraint permits a subject.
    pub(super) fn covers(&self, subject: &CertificateSubject) -> bool {
        match (self, subject) {
            (Self::Below(top), CertificateSubject::Name(name)) => name
                .strip_suffix(top.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
            (Self::V4(net, mask), CertificateSubject::Address(IpAddr::V4(address))) => {
                u32::from(*address) & u32::from(*mask) == u32::from(*net)
            }
            (Self::V6(net, mask), CertificateSubject::Address(IpAddr::V6(address))) => {
                u128::from(*address) & u128::from(*mask) == u128::from(*net)
            }
            _ => false,
        }
    }
}

fn subject(name: &GeneralName<'_>) -> Option<CertificateSubject> {
    match name {
        GeneralName::DNSName(name) => name.parse().ok(),
        GeneralName::IPAddress(bytes) => address(bytes).map(CertificateSubject::Address),
        _ => None,
    }
}

fn wildcard(name: &GeneralName<'_>) -> Option<String> {
    let GeneralName::DNSName(name) = name else {
        return None;
    };
    match name.strip_prefix("*.")?.parse().ok()? {
        CertificateSubject::Name(below) => Some(below),
        CertificateSubject::Address(_) => None,
    }
}

fn part(subtree: &GeneralSubtree<'_>) -> Option<NameConstraint> {
    match &subtree.base {
        GeneralName::DNSName(name) => Some(NameConstraint::Below(name.to_ascii_lowercase())),
        GeneralName::IPAddress(bytes) => {
            let (net, mask) = bytes.split_at_checked(bytes.len() / 2)?;
            match (address(net)?, address(mask)?) {
                (IpAddr::V4(net), IpAddr::V4(mask)) => Some(NameConstraint::V4(net, mask)),
                (IpAddr::V6(net), IpAddr::V6(mask)) => Some(NameConstraint::V6(net, mask)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok()
}
