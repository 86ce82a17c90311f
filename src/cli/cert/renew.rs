//! `gatewren cert renew`: creates a new certificate; the running server uses it without closing a connection.

use serde_json::json;

use super::home::CertContext;
use super::server::take;
use super::show::until;
use gatewren_gate::http::TlsServer;

/// Creates or reads the certificate, and makes the server use it.
pub fn run(home: &CertContext) -> Result<String, String> {
    home.act_as_service()?;
    TlsServer::renew(&home.source).map_err(|e| e.to_string())?;
    // Checks the owner's files too: the server is not asked to reload a certificate that it cannot serve.
    TlsServer::examine(&home.source).map_err(|e| e.to_string())?;
    let shows = take(home.directory(), || home.facts())?;
    let facts = home.facts()?;
    if home.json {
        let made = home.is_own();
        let fields = json!({ "made": made, "sha256": facts.fingerprint(), "server": shows.json() });
        return Ok(fields.to_string());
    }
    let what = if home.is_own() {
        "a new certificate was created"
    } else {
        "the files were read again"
    };
    Ok(format!(
        "{what}: valid until {}\nthe server: {}",
        until(&facts),
        shows.words()
    ))
}
