//! `gatewren cert show`: shows everything about the certificate.

use serde_json::{Value, json};

use super::home::CertContext;
use super::server::PresentedCertificate;
use gatewren_base::sys::{now_ms, rfc3339};
use gatewren_gate::http::{CertificateFacts, CertificateSubject, TlsServer};

const DAY: i64 = 24 * 60 * 60;

/// Reads the files, and asks the running server for the certificate that it presents.
pub fn run(home: &CertContext) -> Result<String, String> {
    home.act_as_service()?;
    let status = CertificateStatus::of(home)?;
    Ok(if home.json {
        status.json().to_string()
    } else {
        status.words()
    })
}

struct CertificateStatus<'a> {
    home: &'a CertContext,
    facts: CertificateFacts,
    authority: Option<CertificateFacts>,
    pin: String,
    shows: PresentedCertificate,
}

impl<'a> CertificateStatus<'a> {
    fn of(home: &'a CertContext) -> Result<Self, String> {
        let facts = home.facts()?;
        Ok(Self {
            authority: home.authority()?,
            pin: TlsServer::pin_of(&home.source)
                .map_err(|e| e.to_string())?
                .to_string(),
            shows: PresentedCertificate::at(home.directory(), &facts),
            facts,
            home,
        })
    }

    /// The host's names that the certificate does not cover, each with whether a new certificate would.
    fn missing(&self) -> Vec<(CertificateSubject, bool)> {
        let subjects = self.home.subjects().into_iter();
        let missing = subjects.filter(|subject| !self.facts.covers(subject));
        let would = |subject: &CertificateSubject| match &self.authority {
            Some(authority) => authority.permits(subject),
            None => false,
        };
        missing
            .map(|subject| {
                let would = would(&subject);
                (subject, would)
            })
            .collect()
    }

    fn words(&self) -> String {
        let facts = &self.facts;
        let mut lines = vec![
            ("from", self.origin().to_owned()),
            (
                "certificate",
                self.home.source.certificate().display().to_string(),
            ),
            ("key", self.home.source.key().display().to_string()),
            ("valid for", facts.names().join(" ")),
            ("since", moment(facts.from())),
            ("until", until(facts)),
            ("SHA-256", facts.fingerprint()),
        ];
        if let (Some(file), Some(authority)) = (self.home.source.ca(), &self.authority) {
            lines.extend([
                ("authority", file.display().to_string()),
                ("until", until(authority)),
                ("SHA-256", authority.fingerprint()),
            ]);
        }
        lines.push(("pin", self.pin.clone()));
        lines.push(("this host", self.coverage()));
        lines.push(("the server", self.shows.words()));
        let line = |(name, value): &(&str, String)| format!("{name:<12} {value}");
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn origin(&self) -> &'static str {
        if self.home.is_own() {
            "this host's own authority (tls.mode = \"own\"), renewed by the server"
        } else {
            "the owner's files (tls.mode = \"files\"), renewed by the program that created them"
        }
    }

    fn coverage(&self) -> String {
        let missing = self.missing();
        if missing.is_empty() {
            return "all its names and addresses are covered".to_owned();
        }
        let listed = |could: bool| -> Vec<String> {
            let of = missing.iter().filter(|(_, would)| *would == could);
            of.map(|(subject, _)| subject.to_string()).collect()
        };
        let (mendable, outside) = (listed(true), listed(false));
        let mut words = Vec::new();
        if !mendable.is_empty() {
            let names = mendable.join(" ");
            words.push(format!("not covered: {names}; run: gatewren cert renew"));
        }
        if !outside.is_empty() {
            let names = outside.join(" ");
            let why = if self.home.is_own() {
                format!(
                    "the authority was created for other names; for a new one, which every client must trust again: \
                     systemctl stop gatewren, remove {}, systemctl start gatewren",
                    self.home.directory().join("tls").display()
                )
            } else {
                "not in the owner's certificate".to_owned()
            };
            words.push(format!("not covered: {names} ({why})"));
        }
        words.join("; ")
    }

    fn json(&self) -> Value {
        let facts = &self.facts;
        let missing = self.missing();
        let subjects = self.home.subjects().into_iter().map(|subject| {
            let covered = !missing.iter().any(|(other, _)| *other == subject);
            json!({ "name": subject.to_string(), "covered": covered })
        });
        let authority = self.authority.as_ref().map(|authority| {
            json!({
                "file": self.home.source.ca(),
                "until": moment(authority.until()),
                "sha256": authority.fingerprint(),
            })
        });
        json!({
            "mode": if self.home.is_own() { "own" } else { "files" },
            "certificate": self.home.source.certificate(),
            "key": self.home.source.key(),
            "holds_for": facts.names(),
            "from": moment(facts.from()),
            "until": moment(facts.until()),
            "days_left": days_left(facts),
            "sha256": facts.fingerprint(),
            "authority": authority,
            "pin": self.pin,
            "box": subjects.collect::<Vec<_>>(),
            "server": self.shows.json(),
        })
    }
}

/// When the certificate expires, with the days that are left.
pub fn until(facts: &CertificateFacts) -> String {
    let left = days_left(facts);
    let words = match left {
        i64::MIN..0 => "it has expired".to_owned(),
        0 => "less than a day is left".to_owned(),
        1 => "1 day is left".to_owned(),
        _ => format!("{left} days are left"),
    };
    format!("{}, {words}", moment(facts.until()))
}

/// Whole days until it expires; negative if it has expired.
fn days_left(facts: &CertificateFacts) -> i64 {
    let now = i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX);
    facts.until().saturating_sub(now).div_euclid(DAY)
}

fn moment(seconds: i64) -> String {
    rfc3339(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000))
}
