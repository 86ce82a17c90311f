//! The host's own authority at set-up: replaced if it cannot sign for the names and no client trusts it yet.

use std::fs;
use std::io::ErrorKind;

use gatewren_base::config::Settings;
use gatewren_base::sys::as_owner_of;
use gatewren_gate::http::{CertificateFacts, CertificateSubject};
use gatewren_server::app::certificate;
use gatewren_store::vault::Vault;

/// Returns whether the authority cannot sign for the names of these settings, while no client trusts it yet: no
/// agent has connected, and the owner has set no password.
///
/// # Errors
/// If it cannot sign, but clients may trust it.
pub fn must_be_replaced(settings: &Settings) -> Result<bool, String> {
    let source = certificate(settings).map_err(|e| e.to_string())?;
    let Some(ca) = source.ca().filter(|_| settings.state_dir.exists()) else {
        return Ok(false);
    };
    let look = || {
        if !ca.exists() {
            return Ok(false);
        }
        let authority = CertificateFacts::in_file(&ca).map_err(|e| e.to_string())?;
        let mut names = settings.names.iter();
        let refused = names.find(|name| {
            let subject = name.parse::<CertificateSubject>();
            subject.is_ok_and(|subject| !authority.permits(&subject))
        });
        match refused {
            None => Ok(false),
            Some(_) if is_unused(settings)? => Ok(true),
            Some(name) => Err(format!(
                "nothing was changed: the certificate authority was created for earlier names of this host and \
                 cannot sign for {name}, and clients may trust it. For a new one, which every client must trust \
                 again: systemctl stop gatewren, remove {}, and run this again",
                settings.state_dir.join("tls").display()
            )),
        }
    };
    as_owner_of(&settings.state_dir, look).map_err(|e| e.to_string())?
}

/// Removes the authority; the server creates a new one when it reloads its settings.
pub fn remove(settings: &Settings) -> Result<(), String> {
    let tls = settings.state_dir.join("tls");
    let remove = || match fs::remove_dir_all(&tls) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {cause}", tls.display()))
        }
        _ => Ok(()),
    };
    as_owner_of(&settings.state_dir, remove).map_err(|e| e.to_string())?
}

fn is_unused(settings: &Settings) -> Result<bool, String> {
    let file = settings.state_dir.join("vault.db");
    if !file.exists() {
        return Ok(true);
    }
    let vault = Vault::open(&file).map_err(|e| e.to_string())?;
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let password = vault.owner().password().map_err(|e| e.to_string())?;
    Ok(password.is_none() && agents.iter().all(|agent| agent.last_used_ms.is_none()))
}
