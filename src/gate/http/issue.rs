//! Issues an authority and the certificates that it signs; does no file I/O.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CidrSubnet, DnType, Error,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, SanType,
};
use time::{Duration, OffsetDateTime};

use super::subject::CertificateSubject;

/// The validity of the authority; clients must install a new one by hand.
const AUTHORITY_HOLDS: Duration = Duration::days(3650);

/// The validity of the server's certificate.
const SERVER_HOLDS: Duration = Duration::days(90);

/// How far before now the validity begins, for clients with slow clocks.
const CLOCK_SKEW: Duration = Duration::days(1);

/// The maximum length of a common name (RFC 5280, appendix A.1).
const MAX_COMMON_NAME: usize = 64;

/// The zones of home networks. A host with a name in one of them may have the same name in the others.
const HOME_ZONES: [&str; 4] = ["local", "lan", "home.arpa", "internal"];

/// Addresses inside a home: loopback, private networks, link-local addresses, and the shared addresses that overlay
/// networks use (RFC 6598).
const HOME_NETWORKS: [(IpAddr, u8); 9] = [
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
];

/// A certificate and its key, both in PEM.
pub(super) struct IssuedCertificate {
    pub cert: String,
    pub key: String,
}

/// Creates an authority that can sign for `own` names with their subdomains, and for addresses of home networks. A
/// client that trusts it trusts no certificate of a public site or of another machine at home through it.
pub(super) fn authority(
    own: &[CertificateSubject],
    now: OffsetDateTime,
) -> Result<IssuedCertificate, Error> {
    let key = KeyPair::generate()?;
    let networks = HOME_NETWORKS.map(|(net, bits)| network(net, bits));
    let names = own_names(own).into_iter().map(GeneralSubtree::DnsName);
    let addresses = own.iter().filter_map(|subject| match subject {
        CertificateSubject::Name(_) => None,
        CertificateSubject::Address(IpAddr::V4(address)) => Some(network((*address).into(), 32)),
        CertificateSubject::Address(IpAddr::V6(address)) => Some(network((*address).into(), 128)),
    });
    let mut params = valid_for(AUTHORITY_HOLDS, now);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.chain(networks).chain(addresses).collect(),
        excluded_subtrees: Vec::new(),
    });
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    name(&mut params, "gatewren authority", own.first());
    let cert = params.self_signed(&key)?.pem();
    let key = key.serialize_pem();
    Ok(IssuedCertificate { cert, key })
}

/// Returns the names in `own`, also in every zone of home networks, and `localhost`, without duplicates.
fn own_names(own: &[CertificateSubject]) -> BTreeSet<String> {
    let mut names = BTreeSet::from(["localhost".to_owned()]);
    for subject in own {
        let CertificateSubject::Name(name) = subject else {
            continue;
        };
        names.insert(name.clone());
        let zone = HOME_ZONES
            .iter()
            .find_map(|zone| name.strip_suffix(zone)?.strip_suffix('.'));
        let label = zone.unwrap_or(name);
        if !label.contains('.') && label != "localhost" {
            names.extend(HOME_ZONES.map(|zone| format!("{label}.{zone}")));
        }
    }
    names
}

/// Issues a new certificate for the server, with a new key.
pub(super) fn server(
    authority: &IssuedCertificate,
    subjects: &[CertificateSubject],
    now: OffsetDateTime,
) -> Result<IssuedCertificate, Error> {
    let key = KeyPair::generate()?;
    let cert = sign_certificate(authority, subjects, &key, now)?.pem();
    let key = key.serialize_pem();
    Ok(IssuedCertificate { cert, key })
}

/// Issues a certificate for some of the server's subjects, with its existing key.
pub(super) fn part(
    authority: &IssuedCertificate,
    subjects: &[CertificateSubject],
    key: &str,
    now: OffsetDateTime,
) -> Result<Certificate, Error> {
    sign_certificate(authority, subjects, &KeyPair::from_pem(key)?, now)
}

fn sign_certificate(
    authority: &IssuedCertificate,
    subjects: &[CertificateSubject],
    key: &KeyPair,
    now: OffsetDateTime,
) -> Result<Certificate, Error> {
    let issuer = Issuer::from_ca_cert_pem(&authority.cert, KeyPair::from_pem(&authority.key)?)?;
    let mut params = valid_for(SERVER_HOLDS, now);
    params.subject_alt_names = subjects.iter().map(san).collect::<Result<_, _>>()?;
    // Explicit, because strict clients require a subject key identifier.
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    name(&mut params, "gatewren server", subjects.first());
    params.signed_by(key, &issuer)
}

fn valid_for(time: Duration, now: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + time;
    params
}

fn name(params: &mut CertificateParams, role: &str, of: Option<&CertificateSubject>) {
    let mut text = of.map_or_else(|| role.to_owned(), |subject| format!("{role}, {subject}"));
    // A subject is ASCII, so every index is a character boundary.
    text.truncate(MAX_COMMON_NAME);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, text);
}

fn network(net: IpAddr, bits: u8) -> GeneralSubtree {
    GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(net, bits))
}

fn san(subject: &CertificateSubject) -> Result<SanType, Error> {
    Ok(match subject {
        CertificateSubject::Name(name) => SanType::DnsName(name.as_str().try_into()?),
        CertificateSubject::Address(address) => SanType::IpAddress(*address),
    })
}

#[cfg(test)]
mod tests {
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;
    use gatewren_http_client::{Pin, PinPrefix, PinnedServer};

    /// The most certificates of a chain that a client searches for its pin.
    const MAX_CHAIN: usize = 8;

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn leaf(
        authority: &IssuedCertificate,
        name: &str,
        now: OffsetDateTime,
    ) -> CertificateDer<'static> {
        let subjects: [CertificateSubject; 1] = [name.parse().unwrap()];
        der(&server(authority, &subjects, now).unwrap().cert)
    }

    fn is_accepted(
        pinned: &CertificateDer<'_>,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> bool {
        let start = PinPrefix::from(Pin::of(pinned).unwrap());
        let verifier = PinnedServer::new(start);
        let name = ServerName::try_from("another.name").unwrap();
        let now = UnixTime::now();
        verifier
            .verify_server_cert(leaf, others, &name, &[], now)
            .is_ok()
    }

    #[test]
    fn a_pin_is_of_the_leaf_or_of_who_has_signed_for_it() {
        let now = OffsetDateTime::now_utc();
        let names = ["box.lan".parse().unwrap()];
        let signer = authority(&names, now).unwrap();
        let other = authority(&names, now).unwrap();
        let (ours, theirs) = (der(&signer.cert), der(&other.cert));
        let good = leaf(&signer, "box.lan", now);
        let forged = leaf(&other, "box.lan", now);
        let late = leaf(&signer, "box.lan", now - Duration::days(100));
        let outside = leaf(&signer, "bank.example", now);
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
