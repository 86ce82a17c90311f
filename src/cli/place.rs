//! Which gatewren a command is about: the daemon of the settings, or a directory of `try`.

use std::path::{Path, PathBuf};

use crate::config::{SETTINGS_FILE, Settings};
use crate::sys::{Holder, act_as_owner_of};
use crate::vault::Vault;

/// Options that several commands have.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// The settings whose state directory is meant [default: /etc/gatewren/gatewren.toml]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// The state directory itself, such as the --dir of `gatewren try`
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
}

impl Place {
    /// A database there; it must exist, because only the server makes them.
    ///
    /// What is run by root acts as the directory's owner from here on: the files that a database has beside it must
    /// stay the server's, and root does not follow what the server's user has laid there.
    pub fn file(&self, name: &str) -> Result<PathBuf, String> {
        let directory = match &self.dir {
            Some(directory) => directory.clone(),
            None => self.settings()?.state_dir,
        };
        let file = directory.join(name);
        if file.exists() {
            return match act_as_owner_of(&directory) {
                Ok(()) => Ok(file),
                Err(cause) => Err(format!(
                    "cannot act as the user that {} belongs to: {cause}",
                    directory.display()
                )),
            };
        }
        Err(format!(
            "there is no {}; start gatewren once, or name its state directory with --dir",
            file.display()
        ))
    }

    /// Whether a directory was named, which is not that of the settings.
    pub fn is_a_directory(&self) -> bool {
        self.dir.is_some()
    }

    /// Its state directory, by its settings.
    pub fn directory(&self, settings: &Settings) -> PathBuf {
        let named = self.dir.as_ref();
        named.unwrap_or(&settings.state_dir).clone()
    }

    /// The settings of that gatewren; a directory that is named alone runs on the defaults, as `try` does.
    pub fn settings(&self) -> Result<Settings, String> {
        let file = match (&self.config, &self.dir) {
            (Some(file), _) => file,
            (None, Some(_)) => return Ok(Settings::default()),
            (None, None) => Path::new(SETTINGS_FILE),
        };
        Settings::load(file).map_err(|e| e.to_string())
    }

    /// The same with the address at which the one that runs listens, which systemd may have opened, or `try` chosen.
    pub fn settings_as_served(&self) -> Result<Settings, String> {
        let mut settings = self.settings()?;
        let holder = Holder::of(&self.directory(&settings));
        settings.listen = holder
            .and_then(|holder| holder.address)
            .map_or(settings.listen, |address| vec![address]);
        Ok(settings)
    }

    /// Whether the settings are those of the service.
    pub fn is_standard(&self) -> bool {
        self.dir.is_none() && self.file_of_settings() == Path::new(SETTINGS_FILE)
    }

    /// The file that the settings are from, or would be.
    pub fn file_of_settings(&self) -> PathBuf {
        let file = self.config.clone();
        file.unwrap_or_else(|| SETTINGS_FILE.into())
    }

    /// The same with the state directory that is meant.
    pub fn settings_there(&self) -> Result<Settings, String> {
        let mut settings = self.settings()?;
        if let Some(directory) = &self.dir {
            settings.state_dir = std::path::absolute(directory)
                .map_err(|e| format!("--dir {}: {e}", directory.display()))?;
        }
        Ok(settings)
    }

    /// The settings file that is meant; none for a directory that is named alone.
    pub fn config_file(&self) -> Option<PathBuf> {
        match (&self.config, &self.dir) {
            (Some(file), _) => Some(file.clone()),
            (None, Some(_)) => None,
            (None, None) => Some(SETTINGS_FILE.into()),
        }
    }

    /// The vault there.
    pub fn vault(&self) -> Result<Vault, String> {
        Vault::open(&self.file("vault.db")?).map_err(|e| e.to_string())
    }
}
