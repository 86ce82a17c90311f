//! The gatewren that a `cert` command is about: its settings, its certificate's source, and this host's names.

use std::path::{Path, PathBuf};

use super::super::console::target::InstanceArgs;
use gatewren_base::config::{Settings, TlsMode};
use gatewren_base::sys::{act_as_owner_of, as_owner_of, is_root, may_use};
use gatewren_gate::http::{CertificateFacts, CertificateSubject, TlsSource};
use gatewren_server::app::{certificate, server_addresses, server_names};

/// A gatewren and its certificate.
pub struct CertContext {
    pub settings: Settings,
    pub source: TlsSource,
    /// The settings file; `None` for a directory of `try`.
    pub config: Option<PathBuf>,
    pub json: bool,
}

impl CertContext {
    /// Returns the gatewren that the settings describe.
    pub fn of(place: &InstanceArgs, json: bool) -> Result<Self, String> {
        let settings = place.settings_in_directory()?;
        Ok(Self {
            source: certificate(&settings).map_err(|e| e.to_string())?,
            settings,
            config: place.config_file(),
            json,
        })
    }

    pub fn directory(&self) -> &Path {
        &self.settings.state_dir
    }

    /// Whether our own authority signs it.
    pub fn is_own(&self) -> bool {
        self.settings.tls.mode == TlsMode::Own
    }

    /// Makes a process of root act as the service from here on. Files that it creates belong to the service, and
    /// root does not follow links that the service has created.
    pub fn act_as_service(&self) -> Result<(), String> {
        self.is_there()?;
        act_as_owner_of(self.directory()).map_err(|cause| self.cannot_act(&cause))
    }

    /// The same for one action; then the process is root again.
    pub fn as_service<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        self.is_there()?;
        as_owner_of(self.directory(), act).map_err(|cause| self.cannot_act(&cause))?
    }

    fn is_there(&self) -> Result<(), String> {
        // Only the server creates this directory. Other programs create nothing where no server has run.
        if self.directory().join("lock").exists() || !is_root() && self.directory().is_dir() {
            if is_root() || may_use(self.directory()) {
                return Ok(());
            }
            return Err(format!(
                "{} belongs to another user; run this as root",
                self.directory().display()
            ));
        }
        Err(format!(
            "{} not found; start gatewren once, or give its state directory with --dir",
            self.directory().display()
        ))
    }

    fn cannot_act(&self, cause: &std::io::Error) -> String {
        format!(
            "cannot act as the owner of {}: {cause}",
            self.directory().display()
        )
    }

    /// The facts of the certificate in its file.
    pub fn facts(&self) -> Result<CertificateFacts, String> {
        CertificateFacts::in_file(&self.source.certificate()).map_err(|e| e.to_string())
    }

    /// The facts of our own authority's certificate; `None` if another authority signs.
    pub fn authority(&self) -> Result<Option<CertificateFacts>, String> {
        let file = self.source.ca();
        let facts = file.map(|file| CertificateFacts::in_file(&file));
        facts.transpose().map_err(|e| e.to_string())
    }

    /// The current names and addresses of this host.
    pub fn subjects(&self) -> Vec<CertificateSubject> {
        let settings = &self.settings;
        let names = server_names(&settings.names).into_iter();
        let allowed = settings.access.allowed_hosts.iter().cloned();
        let names = names.chain(allowed).filter_map(|name| name.parse().ok());
        let addresses = server_addresses()
            .into_iter()
            .map(CertificateSubject::Address);
        let mut subjects: Vec<CertificateSubject> = names.chain(addresses).collect();
        subjects.sort();
        subjects.dedup();
        subjects
    }
}
