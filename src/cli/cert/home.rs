//! Whose certificate a command is about: its settings, where it comes from, and what this box is called now.

use std::path::{Path, PathBuf};

use super::super::place::Place;
use crate::app::{box_addresses, box_names, certificate};
use crate::config::{Settings, TlsMode};
use crate::http::{Facts, Subject, TlsSource};
use crate::sys::{act_as_owner_of, as_owner_of, files, is_root};

/// A gatewren and its certificate.
pub struct Home {
    pub settings: Settings,
    pub source: TlsSource,
    /// The settings file; none for a directory of `try`.
    pub config: Option<PathBuf>,
    pub json: bool,
}

impl Home {
    /// What is served there by the settings.
    pub fn of(place: &Place, json: bool) -> Result<Self, String> {
        let settings = place.settings_there()?;
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

    /// Whether it is of our own authority.
    pub fn is_own(&self) -> bool {
        self.settings.tls.mode == TlsMode::Own
    }

    /// From here on a command of root acts as the service: what it makes must be the service's, and root does not follow
    /// what the service has laid there.
    pub fn act_as_service(&self) -> Result<(), String> {
        self.is_there()?;
        act_as_owner_of(self.directory()).map_err(|cause| self.cannot_act(&cause))
    }

    /// The same for one deed.
    pub fn as_service<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        self.is_there()?;
        as_owner_of(self.directory(), act).map_err(|cause| self.cannot_act(&cause))?
    }

    fn is_there(&self) -> Result<(), String> {
        // The server makes it, and nobody else makes anything where none has run.
        if self.directory().join("lock").exists() || !is_root() && self.directory().is_dir() {
            if is_root() || files::may_use(self.directory()) {
                return Ok(());
            }
            return Err(format!(
                "{} belongs to another user; run this as root",
                self.directory().display()
            ));
        }
        Err(format!(
            "there is no {}; start gatewren once, or name its state directory with --dir",
            self.directory().display()
        ))
    }

    fn cannot_act(&self, cause: &std::io::Error) -> String {
        format!(
            "cannot act as the user that {} belongs to: {cause}",
            self.directory().display()
        )
    }

    /// What the certificate in its file says.
    pub fn facts(&self) -> Result<Facts, String> {
        Facts::in_file(&self.source.certificate()).map_err(|e| e.to_string())
    }

    /// What that of our own authority says; none where somebody else vouches.
    pub fn authority(&self) -> Result<Option<Facts>, String> {
        let file = self.source.ca();
        let facts = file.map(|file| Facts::in_file(&file));
        facts.transpose().map_err(|e| e.to_string())
    }

    /// The names and addresses under which this box is asked now.
    pub fn subjects(&self) -> Vec<Subject> {
        let settings = &self.settings;
        let names = box_names(&settings.names).into_iter();
        let allowed = settings.access.allowed_hosts.iter().cloned();
        let names = names.chain(allowed).filter_map(|name| name.parse().ok());
        let addresses = box_addresses().into_iter().map(Subject::Address);
        let mut subjects: Vec<Subject> = names.chain(addresses).collect();
        subjects.sort();
        subjects.dedup();
        subjects
    }
}
