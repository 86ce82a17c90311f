//! The running server: which certificate it presents, and making it reload.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use gatewren_base::sys::LockHolder;
use gatewren_gate::http::{CertificateFacts, shown_at};

/// How long the server may take to present the new certificate; then the command fails.
const WITHIN: Duration = Duration::from_secs(15);

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(100);

/// The certificate that the running server presents.
#[derive(Debug, PartialEq, Eq)]
pub enum PresentedCertificate {
    /// No running server was found.
    NotRunning,
    /// A server runs on standard input and output, without a certificate.
    Nobody,
    /// The expected certificate.
    This(SocketAddr),
    /// Another certificate, with this fingerprint.
    Another(SocketAddr, String),
    /// The check failed, with this cause.
    Unseen(SocketAddr, String),
}

impl PresentedCertificate {
    /// Connects to the server of a directory, and compares its certificate with the expected one.
    pub fn at(directory: &Path, expected: &CertificateFacts) -> Self {
        let Some(holder) = LockHolder::of(directory) else {
            return Self::NotRunning;
        };
        let Some(bound) = holder.address else {
            return Self::Nobody;
        };
        let mut seen = Self::NotRunning;
        for address in reachable(bound) {
            match shown_at(address) {
                Ok(der) if der == expected.der() => return Self::This(address),
                Ok(der) => {
                    let facts = CertificateFacts::of(&der);
                    let print = facts.map_or_else(String::new, |facts| facts.fingerprint());
                    return Self::Another(address, print);
                }
                Err(cause) => seen = Self::Unseen(address, cause.to_string()),
            }
        }
        seen
    }

    /// The result as one line.
    pub fn words(&self) -> String {
        match self {
            Self::NotRunning => "not running with this state directory".to_owned(),
            Self::Nobody => "runs on standard input and output, without a certificate".to_owned(),
            Self::This(address) => format!("presents this certificate at {address}"),
            Self::Another(address, _) => {
                format!("presents another certificate at {address}; run: gatewren cert renew")
            }
            Self::Unseen(address, cause) => {
                format!("runs, but presents no certificate at {address}: {cause}")
            }
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Self::NotRunning => json!({ "running": false }),
            Self::Nobody => json!({ "running": true, "shows": null }),
            Self::This(address) => json!({ "running": true, "shows": "this", "address": address }),
            Self::Another(address, print) => {
                json!({ "running": true, "shows": "another", "address": address, "sha256": print })
            }
            Self::Unseen(address, cause) => {
                json!({ "running": true, "shows": "unseen", "address": address, "error": cause })
            }
        }
    }
}

/// Makes the running server, if there is one, reload, and waits until it presents the certificate that is then in
/// the file.
pub fn take(
    directory: &Path,
    facts: impl Fn() -> Result<CertificateFacts, String>,
) -> Result<PresentedCertificate, String> {
    let holders = LockHolder::all(directory);
    if holders.is_empty() {
        return Ok(PresentedCertificate::NotRunning);
    }
    for holder in holders {
        holder
            .ask_to_reload()
            .map_err(|cause| format!("cannot make the running server reload: {cause}"))?;
    }
    let since = Instant::now();
    loop {
        thread::sleep(PAUSE);
        let shows = facts().map(|facts| PresentedCertificate::at(directory, &facts));
        if let Ok(PresentedCertificate::This(_) | PresentedCertificate::Nobody) = shows {
            return shows;
        }
        if since.elapsed() > WITHIN {
            let shows = shows?.words();
            return Err(format!(
                "the running server was asked to load the certificate; result: {shows}. For the reason, see \
                 journalctl -u gatewren"
            ));
        }
    }
}

/// The addresses at which this host reaches a listener: "any address" is not one to connect to.
fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port()));
    match bound {
        _ if !bound.ip().is_unspecified() => vec![bound],
        SocketAddr::V4(_) => vec![v4],
        // An IPv6 wildcard socket also gets IPv4 connections, and IPv6 may be disabled.
        SocketAddr::V6(_) => vec![v6, v4],
    }
}
