//! `gatewren cert trust`: prints the authority's certificate, and how each system is made to trust it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::home::CertContext;
use super::show::until;
use gatewren_base::sys::{files, host_name};
use gatewren_gate::http::CertificateFacts;
use gatewren_gate::owner_actions::{AUTHORITY_PEM, SYSTEMS, TrustGuide, TrustSteps};
use gatewren_owner::profile;

/// Where Debian reads local authorities from.
const STORE: &str = "/usr/local/share/ca-certificates";

/// The program that makes Debian read that directory.
const UPDATE: &str = "/usr/sbin/update-ca-certificates";

/// The name of the file in that directory.
const ENTRY: &str = "gatewren.crt";

/// The system to print instructions for, or the form of the certificate.
#[derive(Debug, clap::Args)]
pub struct CertTrustArgs {
    /// Only this system: debian, fedora, macos, windows, node, python, codex, android, iphone or firefox
    #[arg(value_name = "SYSTEM", value_parser = SYSTEMS.map(|system| system.key))]
    system: Option<String>,

    /// Write the certificate itself to standard output, in this form: pem, der or mobileconfig
    #[arg(long, value_name = "FORM", conflicts_with_all = ["system", "install", "remove"])]
    form: Option<Form>,

    /// Make this machine trust it: adds it to Debian's store, /usr/local/share/ca-certificates
    #[arg(long, conflicts_with_all = ["system", "remove"])]
    install: bool,

    /// Remove it from this machine's store
    #[arg(long, conflicts_with = "system")]
    remove: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    Pem,
    Der,
    Mobileconfig,
}

/// Prints the instructions, writes the certificate, or adds it to the store.
pub fn run(home: &CertContext, args: &CertTrustArgs) -> Result<String, String> {
    if args.remove {
        return remove(home.json);
    }
    let (file, facts) = authority(home)?;
    if args.install {
        return install(home.json, &facts);
    }
    if let Some(form) = args.form {
        return write(form, &facts);
    }
    let of = |system: &&TrustGuide| args.system.as_ref().is_none_or(|key| key == system.key);
    let systems: Vec<&TrustGuide> = SYSTEMS.iter().filter(of).collect();
    Ok(if home.json {
        let systems = systems
            .iter()
            .map(|system| system_json(system))
            .collect::<Vec<_>>();
        json!({
            "file": file, "sha256": facts.fingerprint(), "pin": facts.pin.to_string(), "systems": systems,
        })
        .to_string()
    } else {
        words(&file, &facts, &systems)
    })
}

/// Reads our own authority's certificate, as the user of the service that owns it.
fn authority(home: &CertContext) -> Result<(String, CertificateFacts), String> {
    let Some(file) = home.source.ca() else {
        return Err(format!(
            "the certificate is the owner's (tls.mode = \"files\"): clients must trust the authority that signed {}, \
             not one of this host",
            home.source.certificate().display()
        ));
    };
    let facts = home.as_service(|| CertificateFacts::in_file(&file).map_err(|e| e.to_string()))?;
    Ok((file.display().to_string(), facts))
}

fn system_json(system: &TrustGuide) -> Value {
    match system.how {
        TrustSteps::Line(line) => {
            json!({ "system": system.key, "name": system.name, "line": line })
        }
        TrustSteps::Words(words) => {
            json!({ "system": system.key, "name": system.name, "words": words })
        }
    }
}

fn words(file: &str, facts: &CertificateFacts, systems: &[&TrustGuide]) -> String {
    let host = host_name().unwrap_or_else(|| "BOX".to_owned());
    let mut text = format!(
        "The certificate authority of this host, {file}, is valid until {}.\nIt can sign only for names and \
         addresses of home networks, never for public sites.\n\nSHA-256  {}\npin      {}\n\nCopy it to the client \
         over a connection that you already trust:\n  ssh {host} sudo gatewren cert trust --form pem > \
         {AUTHORITY_PEM}\n",
        until(facts),
        facts.fingerprint(),
        facts.pin
    );
    for system in systems {
        let how = match system.how {
            TrustSteps::Line(line) => line,
            TrustSteps::Words(words) => words,
        };
        let _ = write!(text, "\n{}:\n  {how}\n", system.name);
    }
    text.trim_end().to_owned()
}

fn write(form: Form, facts: &CertificateFacts) -> Result<String, String> {
    let mut output = io::stdout();
    let bytes = match form {
        Form::Pem => facts.pem().into_bytes(),
        Form::Der if output.is_terminal() => {
            return Err(
                "DER is binary, so it is not printed to a terminal; redirect it: > gatewren-ca.crt"
                    .to_owned(),
            );
        }
        Form::Der => facts.der().to_vec(),
        Form::Mobileconfig => {
            let host = host_name().unwrap_or_default();
            profile(&host, facts.der()).into_bytes()
        }
    };
    let written = output.write_all(&bytes).and_then(|()| output.flush());
    written.map_err(|cause| format!("cannot write the certificate: {cause}"))?;
    Ok(String::new())
}

/// Adds the certificate to the store; does nothing if it is already there.
fn install(json: bool, facts: &CertificateFacts) -> Result<String, String> {
    is_debians()?;
    let entry = Path::new(STORE).join(ENTRY);
    let pem = facts.pem();
    let there = fs::read(&entry).is_ok_and(|bytes| bytes == pem.as_bytes());
    if !there {
        files::public_dir(Path::new(STORE)).map_err(|e| format!("{e}; run it as root"))?;
        files::write_public(&entry, pem.as_bytes()).map_err(|e| format!("{e}; run it as root"))?;
    }
    // Also if the file exists: the last attempt may have ended between the two steps.
    update()?;
    let shown = entry.display();
    let when = if there { "already" } else { "now" };
    let words = format!("this machine trusts it {when}: {shown}");
    Ok(render_state(json, !there, "trusted", &words))
}

fn remove(json: bool) -> Result<String, String> {
    is_debians()?;
    let entry = Path::new(STORE).join(ENTRY);
    let there = match fs::remove_file(&entry) {
        Ok(()) => true,
        Err(cause) if cause.kind() == ErrorKind::NotFound => false,
        Err(cause) => {
            return Err(format!(
                "cannot remove {}: {cause}; run it as root",
                entry.display()
            ));
        }
    };
    if there {
        update()?;
    }
    let words = if there {
        "this machine no longer trusts it; running programs may need a restart"
    } else {
        "nothing to remove: this command has not installed it on this machine"
    };
    Ok(render_state(json, there, "not trusted", words))
}

fn render_state(json: bool, changed: bool, state: &str, words: &str) -> String {
    if json {
        return json!({ "state": state, "changed": changed }).to_string();
    }
    words.to_owned()
}

fn is_debians() -> Result<(), String> {
    if Path::new(UPDATE).exists() {
        return Ok(());
    }
    Err(format!(
        "{UPDATE} not found: it is in Debian's package ca-certificates; `gatewren cert trust` shows the commands for \
         other systems"
    ))
}

/// Rebuilds the store with `--fresh`: otherwise a removed certificate leaves a link behind, and a new certificate
/// under the same name is not found by its hash.
fn update() -> Result<(), String> {
    let ran = Command::new(UPDATE).arg("--fresh").output();
    let output = ran.map_err(|cause| format!("cannot run {UPDATE}: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{UPDATE} failed: {}", errors.trim()))
}
