//! `gatewren cert install`: replaces our own certificate by the owner's, or the other way round.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::mdns::follow_pin;
use super::fragment::CertFragment;
use super::home::CertContext;
use super::hook;
use super::server::{PresentedCertificate, take};
use super::show::until;
use gatewren_base::sys::{files, now_ms};
use gatewren_gate::http::{
    CertificateFacts, CertificateSubject, CertificateSubjects, OwnCertificate, TlsServer, TlsSource,
};

/// The file with key and chain, below `tls` in the state directory.
const INSTALLED: &str = "installed.pem";

/// What to install or to remove.
#[derive(Debug, clap::Args)]
pub struct CertInstallArgs {
    /// The certificate with its chain, as PEM, the server's own certificate first
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// The private key, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Install the certificate that an ACME client has just obtained, from its hook's environment: certbot, lego
    /// or acme.sh
    #[arg(long, conflicts_with_all = ["cert", "remove"])]
    hook: bool,

    /// Go back to this host's own authority, and remove the installed pair
    #[arg(long, conflicts_with = "cert")]
    remove: bool,
}

/// Installs a pair, or removes it.
pub fn run(home: &CertContext, args: &CertInstallArgs) -> Result<String, String> {
    if args.remove {
        return remove(home);
    }
    let (cert, key) = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => (cert.clone(), key.clone()),
        _ if args.hook => hook::find_made_files()?,
        _ => {
            return Err(
                "give --cert FILE and --key FILE, --hook if an ACME client runs this, or --remove"
                    .to_owned(),
            );
        }
    };
    let given = OwnCertificate::read(&cert, &key).map_err(|e| e.to_string())?;
    if args.hook
        && let Some(words) = find_foreign_file(home, &given.facts)?
    {
        return Ok(words);
    }
    install(home, &given)
}

/// A hook may run for every certificate of a machine. If the installed certificate shares no name with the new
/// one, the new one is for another program.
fn find_foreign_file(home: &CertContext, new: &CertificateFacts) -> Result<Option<String>, String> {
    let file = installed_path(home);
    let now = home.as_service(|| Ok(CertificateFacts::in_file(&file).ok()))?;
    let Some(now) = now else { return Ok(None) };
    let names = now.names();
    if new.names().iter().any(|name| names.contains(name)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "nothing was changed: this certificate is for {}, and gatewren's is for {}; to install it anyway, give its \
         files with --cert and --key",
        new.names().join(" "),
        names.join(" ")
    )))
}

fn installed_path(home: &CertContext) -> PathBuf {
    home.directory().join("tls").join(INSTALLED)
}

/// Checks the pair, copies it to where the service can read it, enables it, and makes the running server use it.
pub fn install(home: &CertContext, given: &OwnCertificate) -> Result<String, String> {
    let facts = &given.facts;
    is_of_now(facts)?;
    let file = installed_path(home);
    let fragment = CertFragment::next_to(home.config.as_deref(), &file)?;
    // Before anything is written: the owner has to resolve a contradiction in the settings.
    fragment.may_be_written()?;
    let pem = given.pem();
    let copied = home.as_service(|| copy(&file, pem.as_bytes()))?;
    // The pair is copied first, so a file that the settings name always exists.
    let turned = fragment.write()?;
    let shows = home.as_service(|| take(home.directory(), || in_file(&file)))?;
    follow_pin(facts.pin)?;
    Ok(report(home, facts, copied || turned, &shows))
}

fn in_file(file: &Path) -> Result<CertificateFacts, String> {
    CertificateFacts::in_file(file).map_err(|e| e.to_string())
}

/// Returns whether the file was written; the same content again is not.
fn copy(file: &Path, pem: &[u8]) -> Result<bool, String> {
    if files::read_bounded(file, pem.len()).is_ok_and(|old| old == pem)
        && files::mode(file).is_ok_and(|mode| mode == 0o600)
    {
        return Ok(false);
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    files::private_dir(folder).map_err(|e| e.to_string())?;
    files::write_private(file, pem).map_err(|e| e.to_string())?;
    Ok(true)
}

fn is_of_now(facts: &CertificateFacts) -> Result<(), String> {
    let now = i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX);
    if facts.until() <= now {
        let until = until(facts);
        return Err(format!(
            "the certificate was valid until {until}; nothing was changed"
        ));
    }
    if facts.from() > now {
        return Err(
            "the certificate is not valid yet by this host's clock (timedatectl shows it); nothing was changed"
                .to_owned(),
        );
    }
    Ok(())
}

fn report(
    home: &CertContext,
    facts: &CertificateFacts,
    changed: bool,
    shows: &PresentedCertificate,
) -> String {
    let warning = warning(home, facts);
    if home.json {
        return json!({
            "changed": changed, "holds_for": facts.names(), "sha256": facts.fingerprint(), "pin": facts.pin.to_string(),
            "warning": warning, "server": shows.json(),
        })
        .to_string();
    }
    let what = if changed {
        "is installed"
    } else {
        "is already installed"
    };
    let mut text = format!(
        "the certificate for {} {what}; it is valid until {}\npin: {}\nthe server: {}",
        facts.names().join(" "),
        until(facts),
        facts.pin,
        shows.words()
    );
    if let Some(warning) = warning {
        text.push_str("\nwarning: ");
        text.push_str(&warning);
    }
    text
}

/// Names that clients would fail to connect with.
fn warning(home: &CertContext, facts: &CertificateFacts) -> Option<String> {
    let names = home.subjects().into_iter();
    let names: Vec<CertificateSubject> = names
        .filter(|subject| matches!(subject, CertificateSubject::Name(_)))
        .collect();
    if names.iter().any(|name| facts.covers(name)) {
        return None;
    }
    let wild = facts.names().iter().all(|name| name.starts_with("*."));
    Some(if wild {
        format!(
            "it is valid only for {}; set the name that clients use in the settings, such as names = [\"box{}\"], \
             otherwise the server answers 421",
            facts.names().join(" "),
            facts
                .names()
                .first()
                .map_or("", |name| name.trim_start_matches('*'))
        )
    } else {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        format!(
            "it is valid for none of this host's names so far ({}): clients must use {}",
            names.join(" "),
            facts.names().join(" or ")
        )
    })
}

/// Returns to our own authority. Clients that trusted it before still do.
fn remove(home: &CertContext) -> Result<String, String> {
    let file = installed_path(home);
    let fragment = CertFragment::next_to(home.config.as_deref(), &file)?;
    let turned = fragment.remove()?;
    let own = TlsSource::Own {
        directory: home.directory().join("tls"),
        subjects: CertificateSubjects::default(),
    };
    let shows = home.as_service(|| {
        let shows = take(home.directory(), || in_file(&own.certificate()))?;
        match fs::remove_file(&file) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {cause}", file.display()))
            }
            _ => Ok(shows),
        }
    })?;
    // If no server has run yet, there is no authority, so there is no pin to announce.
    if let Ok(pin) = home.as_service(|| TlsServer::pin_of(&own).map_err(|e| e.to_string())) {
        follow_pin(pin)?;
    }
    Ok(if home.json {
        json!({ "changed": turned, "server": shows.json() }).to_string()
    } else if turned {
        format!(
            "this host's own authority signs the certificate again\nthe server: {}",
            shows.words()
        )
    } else {
        "nothing to remove: this command has installed no certificate".to_owned()
    })
}
