//! A DNS query and its answer.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;
use simple_dns::rdata::RData;
use simple_dns::{
    CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE,
};

use crate::helper_client::{Probe, ProbeAnswer};
use gatewren_base::sys::{neutralise, random_bytes};

use super::super::error::{BackendError, ErrorKind};
use super::super::host::resolver;
use super::probes::ms;
use super::reach::Network;

/// The timeout for a name server's answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The maximum number of records of each section in a result.
const RECORDS: usize = 100;

/// The longest value of a record, in characters; the rest is left out.
const VALUE_CHARS: usize = 1024;

/// A name server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DnsAnswer {
    /// The server that was asked.
    pub server: IpAddr,
    /// The status: `NOERROR`, `NXDOMAIN` (the name does not exist), `SERVFAIL`, `REFUSED` or
    /// another.
    pub status: String,
    /// How long it took, in milliseconds.
    pub time_ms: f64,
    /// Whether the server is authoritative for the name, rather than answering from a cache.
    pub authoritative: bool,
    /// Whether the server has validated the signature (DNSSEC).
    pub authenticated: bool,
    /// The answer records.
    pub answers: Vec<DnsRecord>,
    /// Records about the authoritative servers; without an answer, the zone's SOA.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<DnsRecord>,
    /// Whether there were more records.
    pub truncated: bool,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DnsRecord {
    /// The name that it belongs to.
    pub name: String,
    /// Its type, such as `AAAA`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many seconds it may be cached.
    pub ttl_s: u32,
    /// The value in zone file format, or a note if this server cannot parse the type.
    pub value: String,
}

impl Network {
    /// Queries a name server, by default the host's first one, for records of a type.
    ///
    /// # Errors
    /// When it does not answer, and when the answer cannot be parsed.
    pub async fn query(
        &self,
        name: &str,
        kind: &str,
        server: Option<IpAddr>,
        reference: &str,
    ) -> Result<DnsAnswer, BackendError> {
        let server = match server {
            Some(server) => server,
            None => self.first_server()?,
        };
        let id = u16::from_ne_bytes(random_bytes().map_err(failed)?);
        let question = question(id, name, kind)?;
        let probe = Probe::Name(STANDARD.encode(&question));
        let result = self.probe(server, probe, ANSWER_TIME, reference).await?;
        let words = match result.answer {
            ProbeAnswer::Yes => None,
            ProbeAnswer::Refused => Some("refuses: nothing listens on its port 53"),
            ProbeAnswer::Silent => Some("did not answer in time"),
            ProbeAnswer::Unreachable => Some("cannot be reached"),
        };
        if let Some(words) = words {
            let words = format!("the name server {server} {words}");
            return Err(BackendError::new(ErrorKind::Failed, words));
        }
        let message = STANDARD.decode(&result.message).map_err(failed)?;
        let time_ms = result.times_us.first().copied().flatten().map_or(0.0, ms);
        parse_answer(&message, server, time_ms)
    }

    /// Returns the host's first name server.
    fn first_server(&self) -> Result<IpAddr, BackendError> {
        let servers = resolver(&self.tree).servers;
        let mut addresses = servers.iter().filter_map(|one| IpAddr::from_str(one).ok());
        addresses.next().ok_or_else(|| {
            let words = "/etc/resolv.conf of this machine has no name server; name one in the call";
            BackendError::new(ErrorKind::NotFound, words)
        })
    }
}

fn question(id: u16, name: &str, kind: &str) -> Result<Vec<u8>, BackendError> {
    let wrong = || {
        let shown = neutralise(name);
        let words = format!("{shown} is not a valid name; use a name such as box.lan");
        BackendError::new(ErrorKind::Refused, words)
    };
    let kind = TYPES.iter().find(|(word, _)| *word == kind);
    let Some((_, kind)) = kind else {
        let known: Vec<&str> = TYPES.iter().map(|(word, _)| *word).collect();
        let words = format!("the type must be one of {}", known.join(", "));
        return Err(BackendError::new(ErrorKind::Refused, words));
    };
    // An address is looked up by its reverse name.
    let reversed = name.parse::<IpAddr>().ok().map(reverse);
    let name = reversed.as_deref().unwrap_or(name);
    let name = Name::new(name.trim_end_matches('.')).map_err(|_| wrong())?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let kind = QTYPE::TYPE(*kind);
    let class = QCLASS::CLASS(CLASS::IN);
    packet
        .questions
        .push(Question::new(name, kind, class, false));
    packet.build_bytes_vec().map_err(|_| wrong())
}

/// The types that can be queried.
const TYPES: [(&str, TYPE); 12] = [
    ("A", TYPE::A),
    ("AAAA", TYPE::AAAA),
    ("CAA", TYPE::CAA),
    ("CNAME", TYPE::CNAME),
    ("HTTPS", TYPE::HTTPS),
    ("MX", TYPE::MX),
    ("NS", TYPE::NS),
    ("PTR", TYPE::PTR),
    ("SOA", TYPE::SOA),
    ("SRV", TYPE::SRV),
    ("SVCB", TYPE::SVCB),
    ("TXT", TYPE::TXT),
];

/// Returns the reverse name of an address (RFC 1035, 3.5; RFC 3596, 2.5).
fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(v6) => {
            let digits = format!("{:032x}", v6.to_bits());
            let reversed: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", reversed.join("."))
        }
    }
}

fn parse_answer(message: &[u8], server: IpAddr, time_ms: f64) -> Result<DnsAnswer, BackendError> {
    let packet = Packet::parse(message).map_err(failed)?;
    let records = |all: &[ResourceRecord<'_>]| -> Vec<DnsRecord> {
        all.iter().take(RECORDS).map(record).collect()
    };
    Ok(DnsAnswer {
        server,
        status: status(packet.rcode()).to_owned(),
        time_ms,
        authoritative: packet.has_flags(PacketFlag::AUTHORITATIVE_ANSWER),
        authenticated: packet.has_flags(PacketFlag::AUTHENTIC_DATA),
        answers: records(&packet.answers),
        authority: records(&packet.name_servers),
        truncated: packet.answers.len() > RECORDS || packet.name_servers.len() > RECORDS,
    })
}

/// Returns the names from RFC 2136, which common tools use too.
fn status(code: RCODE) -> &'static str {
    match code {
        RCODE::NoError => "NOERROR",
        RCODE::FormatError => "FORMERR",
        RCODE::ServerFailure => "SERVFAIL",
        RCODE::NameError => "NXDOMAIN",
        RCODE::NotImplemented => "NOTIMP",
        RCODE::Refused => "REFUSED",
        RCODE::YXDOMAIN => "YXDOMAIN",
        RCODE::YXRRSET => "YXRRSET",
        RCODE::NXRRSET => "NXRRSET",
        RCODE::NOTAUTH => "NOTAUTH",
        RCODE::NOTZONE => "NOTZONE",
        RCODE::BADVERS => "BADVERS",
        RCODE::Reserved => "RESERVED",
    }
}

fn record(one: &ResourceRecord<'_>) -> DnsRecord {
    let shown = |text: String| -> String { neutralise(&text).chars().take(VALUE_CHARS).collect() };
    let kind = one.rdata.type_code();
    let word = TYPES.iter().find(|(_, known)| *known == kind);
    DnsRecord {
        name: shown(one.name.to_string()),
        kind: word.map_or_else(
            || format!("TYPE{}", u16::from(kind)),
            |(word, _)| (*word).to_owned(),
        ),
        ttl_s: one.ttl,
        value: shown(value(&one.rdata)),
    }
}

fn value(data: &RData<'_>) -> String {
    match data {
        RData::A(a) => Ipv4Addr::from(a.address).to_string(),
        RData::AAAA(aaaa) => Ipv6Addr::from(aaaa.address).to_string(),
        RData::CNAME(name) => name.0.to_string(),
        RData::NS(name) => name.0.to_string(),
        RData::PTR(name) => name.0.to_string(),
        RData::MX(mx) => format!("{} {}", mx.preference, mx.exchange),
        RData::SRV(srv) => format!(
            "{} {} {} {}",
            srv.priority, srv.weight, srv.port, srv.target
        ),
        RData::TXT(txt) => {
            String::try_from(txt.clone()).unwrap_or_else(|_| "(not text)".to_owned())
        }
        RData::SOA(soa) => format!(
            "{} {} {} {} {} {} {}",
            soa.mname, soa.rname, soa.serial, soa.refresh, soa.retry, soa.expire, soa.minimum
        ),
        RData::CAA(caa) => {
            let value = String::from_utf8_lossy(&caa.value);
            format!("{} {} \"{value}\"", caa.flag, caa.tag)
        }
        RData::SVCB(svcb) => format!("{} {}", svcb.priority, svcb.target),
        RData::HTTPS(https) => format!("{} {}", https.0.priority, https.0.target),
        _ => "(unsupported record type)".to_owned(),
    }
}

fn failed(cause: impl Display) -> BackendError {
    let words = format!("the name server's answer is invalid: {cause}");
    BackendError::new(ErrorKind::Failed, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53));

    /// A name server's answer to `dig` for `example.org MX`: one record with a compressed name.
    const ANSWER: &[u8] = b"\x12\x34\x85\xa0\0\x01\0\x01\0\0\0\0\x07example\x03org\0\0\x0f\0\x01\
        \xc0\x0c\0\x0f\0\x01\0\0\x0e\x10\0\x09\0\x0a\x04mail\xc0\x0c";

    #[test]
    fn an_answer_is_read() {
        let answer = parse_answer(ANSWER, SERVER, 1.5).unwrap();
        assert_eq!(answer.status, "NOERROR");
        assert!(answer.authoritative && answer.authenticated && !answer.truncated);
        let [record] = answer.answers.as_slice() else {
            panic!("{answer:?}");
        };
        assert_eq!((record.kind.as_str(), record.ttl_s), ("MX", 3600));
        assert_eq!(
            (record.name.as_str(), record.value.as_str()),
            ("example.org", "10 mail.example.org")
        );
    }

    #[test]
    fn what_is_cut_or_turns_in_a_circle_is_an_error_and_no_more() {
        for length in 0..ANSWER.len() {
            assert!(
                parse_answer(&ANSWER[..length], SERVER, 0.0).is_err() || length < 13,
                "{length}"
            );
        }
        let mut circle = ANSWER.to_vec();
        let at = circle.len() - 1;
        circle[at] = u8::try_from(at - 1).unwrap();
        let _ = parse_answer(&circle, SERVER, 0.0);
    }

    #[test]
    fn a_question_has_the_name_and_an_address_is_turned_round() {
        let asked = question(0x1234, "example.org.", "MX").unwrap();
        assert_eq!(
            asked,
            b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x0f\0\x01"
        );
        assert_eq!(
            reverse("192.0.2.7".parse().unwrap()),
            "7.2.0.192.in-addr.arpa"
        );
        let six = reverse("2001:db8::1".parse().unwrap());
        assert!(
            six.starts_with("1.0.0.0.") && six.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"),
            "{six}"
        );
        let long = "x".repeat(64);
        for (name, kind) in [(long.as_str(), "A"), ("a", "AXFR"), ("a", "a")] {
            assert!(question(1, name, kind).is_err(), "{name} {kind}");
        }
    }
}
