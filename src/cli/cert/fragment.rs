//! The file in conf.d that turns an installed certificate on, and what in other files speaks against it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::config::Settings;
use crate::sys::files;

/// Its name beside the settings file.
const NAME: &str = "conf.d/cert-installed.toml";

/// The file, and what it names.
pub struct Fragment {
    config: PathBuf,
    file: PathBuf,
    pair: PathBuf,
}

impl Fragment {
    /// Beside these settings, for this pair of key and chain.
    pub fn beside(config: Option<&Path>, pair: &Path) -> Result<Self, String> {
        let config = config.ok_or(
            "a directory of `try` has no settings that could name a certificate; name the settings with --config",
        )?;
        let folder = config.parent().unwrap_or(Path::new(""));
        Ok(Self {
            file: folder.join(NAME),
            config: config.to_owned(),
            pair: pair.to_owned(),
        })
    }

    /// What stands there.
    fn text(&self) -> String {
        let pair = Value::String(self.pair.display().to_string());
        format!(
            "# By `gatewren cert install`; `gatewren cert install --remove` takes it away.\n[tls]\nmode = \"files\"\n\
             cert = {pair}\nkey = {pair}\n"
        )
    }

    /// Whether nothing else in the settings says something else of the certificate.
    pub fn may_be_written(&self) -> Result<(), String> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let beside = fs::read_dir(folder).into_iter().flatten().flatten();
        let beside = beside.map(|entry| entry.path());
        let others = beside.filter(|path| path.extension().is_some_and(|end| end == "toml"));
        let mut others: Vec<PathBuf> = others.filter(|path| *path != self.file).collect();
        others.push(self.config.clone());
        others.sort();
        for file in others {
            // What cannot be read or parsed, the settings' own check names in full.
            let text = fs::read_to_string(&file).unwrap_or_default();
            let table: Table = text.parse().unwrap_or_default();
            let Some(Value::Table(tls)) = table.get("tls") else {
                continue;
            };
            if let Some((key, value)) = tls.iter().find(|(key, value)| !self.agrees(key, value)) {
                return Err(format!(
                    "{} says tls.{key} = {value}, which this would contradict; take the section [tls] out of it. \
                     Nothing was changed",
                    file.display()
                ));
            }
        }
        Ok(())
    }

    fn agrees(&self, key: &str, value: &Value) -> bool {
        let expected = match key {
            "mode" => "files".to_owned(),
            "cert" | "key" => self.pair.display().to_string(),
            _ => return true,
        };
        value.as_str() == Some(&expected)
    }

    /// Writes it, unless it is there; whether it was written. Settings that are not good with it stay as they were.
    pub fn write(&self) -> Result<bool, String> {
        let text = self.text();
        if fs::read_to_string(&self.file).is_ok_and(|old| old == text) {
            return Ok(false);
        }
        let folder = self.file.parent().unwrap_or(Path::new(""));
        files::public_dir(folder).map_err(|e| e.to_string())?;
        files::write_public(&self.file, text.as_bytes()).map_err(|e| e.to_string())?;
        if let Err(error) = Settings::load(&self.config) {
            self.remove()?;
            return Err(format!(
                "the settings are not good, so nothing was turned on: {error}"
            ));
        }
        Ok(true)
    }

    /// Takes it away; whether it was there.
    pub fn remove(&self) -> Result<bool, String> {
        match fs::remove_file(&self.file) {
            Ok(()) => {
                files::sync_directory_of(&self.file).map_err(|e| e.to_string())?;
                Ok(true)
            }
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(format!("cannot remove {}: {cause}", self.file.display())),
        }
    }
}
