//! Which gatewren a command is about: the daemon of the settings, or a directory of `try`.

use std::path::PathBuf;

use crate::config::{SETTINGS_FILE, Settings};
use crate::vault::Vault;

/// Options that several commands have.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// The settings whose state directory is meant
    #[arg(long, value_name = "FILE", default_value = SETTINGS_FILE, global = true)]
    config: PathBuf,

    /// The state directory itself, such as the --dir of `gatewren try`
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
}

impl Place {
    /// Opens the vault there; it must exist, because only the server makes one.
    pub fn vault(&self) -> Result<Vault, String> {
        let directory = match &self.dir {
            Some(directory) => directory.clone(),
            None => {
                Settings::load(&self.config)
                    .map_err(|e| e.to_string())?
                    .state_dir
            }
        };
        let file = directory.join("vault.db");
        if !file.exists() {
            return Err(format!(
                "there is no {}; start gatewren once, or name its state directory with --dir",
                file.display()
            ));
        }
        Vault::open(&file).map_err(|e| e.to_string())
    }
}
