//! The running server beside a command: which certificate it shows, and that it takes a new one.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Facts, shown_at};
use crate::sys::Holder;

/// So long a server may take to show what it was told of; then the command says that it does not.
const WITHIN: Duration = Duration::from_secs(15);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What the running server shows.
#[derive(Debug, PartialEq, Eq)]
pub enum Shows {
    /// None runs that can be found.
    NotRunning,
    /// One runs that nobody connects to: standard input and output.
    Nobody,
    /// The one that was expected.
    This(SocketAddr),
    /// Another one, with this fingerprint.
    Another(SocketAddr, String),
    /// That could not be seen.
    Unseen(SocketAddr, String),
}

impl Shows {
    /// Connects to the server of a directory, and compares.
    pub fn at(directory: &Path, expected: &Facts) -> Self {
        let Some(holder) = Holder::of(directory) else {
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
                    let facts = Facts::of(&der);
                    let print = facts.map_or_else(String::new, |facts| facts.fingerprint());
                    return Self::Another(address, print);
                }
                Err(cause) => seen = Self::Unseen(address, cause.to_string()),
            }
        }
        seen
    }

    /// In a line.
    pub fn words(&self) -> String {
        match self {
            Self::NotRunning => "none runs that keeps its state there".to_owned(),
            Self::Nobody => "serves whoever started it, without a certificate".to_owned(),
            Self::This(address) => format!("shows this certificate at {address}"),
            Self::Another(address, _) => {
                format!("shows another one at {address}; run: gatewren cert renew")
            }
            Self::Unseen(address, cause) => {
                format!("runs, but shows none at {address}: {cause}")
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

/// Has the running server, if there is one, read everything again, and waits until it shows what is in the file then.
pub fn take(directory: &Path, facts: impl Fn() -> Result<Facts, String>) -> Result<Shows, String> {
    let Some(holder) = Holder::of(directory) else {
        return Ok(Shows::NotRunning);
    };
    holder
        .ask_to_reload()
        .map_err(|cause| format!("the running server cannot be told: {cause}"))?;
    let since = Instant::now();
    loop {
        thread::sleep(PAUSE);
        let shows = facts().map(|facts| Shows::at(directory, &facts));
        if let Ok(Shows::This(_) | Shows::Nobody) = shows {
            return shows;
        }
        if since.elapsed() > WITHIN {
            let shows = shows?.words();
            return Err(format!(
                "the running server was told to take the certificate, but {shows}. Why it did not: journalctl -u \
                 gatewren"
            ));
        }
    }
}

/// Where this box reaches what it has bound: nobody can connect to "any address".
fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port()));
    match bound {
        _ if !bound.ip().is_unspecified() => vec![bound],
        SocketAddr::V4(_) => vec![v4],
        // The kernel gives it the connections over IPv4 as well, and IPv6 may be off.
        SocketAddr::V6(_) => vec![v6, v4],
    }
}
