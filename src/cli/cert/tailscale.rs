//! `gatewren cert tailscale`: installs the certificate that Tailscale issues for this host's name in the tailnet.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::home::CertContext;
use super::install::install;
use gatewren_gate::http::{OwnCertificate, PemFile};

/// The client of tailscaled, searched in PATH.
const PROGRAM: &str = "tailscale";

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct CertTailscaleArgs {
    /// The host's name in the tailnet [default: the one of `tailscale status`]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Gets the certificate from tailscaled, and installs it as one of the owner's.
pub fn run(home: &CertContext, args: &CertTailscaleArgs) -> Result<String, String> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => own_name(&ask(&["status", "--json"])?)?,
    };
    // Both are printed to standard output: the key is stored only in the file that the service reads.
    let pair = ask(&["cert", "--cert-file=-", "--key-file=-", &name])?;
    let pair = PemFile {
        pem: &pair,
        path: Path::new("the output of tailscale cert"),
    };
    let given = OwnCertificate::of(pair, pair).map_err(|e| e.to_string())?;
    install(home, &given)
}

/// Runs `tailscale`; returns its output.
fn ask(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let ran = Command::new(PROGRAM).args(arguments).output();
    let output = ran.map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            "the program tailscale was not found in PATH; install Tailscale and sign in".to_owned()
        }
        _ => format!("cannot run tailscale: {cause}"),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let command = arguments.first().unwrap_or(&"");
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("tailscale {command}: {}", errors.trim()))
}

/// The name of this host that Tailscale issues certificates for.
fn own_name(status: &[u8]) -> Result<String, String> {
    let status: Value = serde_json::from_slice(status)
        .map_err(|cause| format!("tailscale status --json printed no JSON: {cause}"))?;
    let own = status.pointer("/Self/DNSName").and_then(Value::as_str);
    let own = own.unwrap_or_default().trim_end_matches('.');
    let listed = status
        .get("CertDomains")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut listed = listed.filter_map(Value::as_str);
    if listed.clone().any(|name| name == own) {
        return Ok(own.to_owned());
    }
    match listed.next() {
        Some(name) => Ok(name.to_owned()),
        None => Err(
            "Tailscale issues no certificates here: start it, and enable HTTPS certificates for the tailnet in its \
             admin console under DNS"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_boxs_own_where_certificates_are_given_for_it() {
        let name = |status: &str| own_name(status.as_bytes());
        let own = r#"{"Self":{"DNSName":"box.tail1.ts.net."},"CertDomains":["other.ts.net","box.tail1.ts.net"]}"#;
        assert_eq!(name(own), Ok("box.tail1.ts.net".to_owned()));
        let first = r#"{"Self":{"DNSName":""},"CertDomains":["box.tail1.ts.net"]}"#;
        assert_eq!(name(first), Ok("box.tail1.ts.net".to_owned()));
        for none in [
            r#"{"Self":{"DNSName":"box.tail1.ts.net."},"CertDomains":null}"#,
            r#"{"BackendState":"Stopped"}"#,
        ] {
            assert!(
                name(none)
                    .unwrap_err()
                    .contains("enable HTTPS certificates"),
                "{none}"
            );
        }
        assert!(
            name("Tailscale is stopped.")
                .unwrap_err()
                .contains("no JSON")
        );
    }
}
