//! The file in conf.d that enables an installed certificate, and its conflicts with other settings files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use gatewren_base::config::Settings;
use gatewren_base::sys::files;

/// The path of the file, relative to the directory of the settings file.
const NAME: &str = "conf.d/cert-installed.toml";

/// The file, and the paths in it.
pub struct CertFragment {
    config: PathBuf,
    file: PathBuf,
    pair: PathBuf,
}

impl CertFragment {
    /// Returns the file beside these settings, for this file with key and chain.
    pub fn next_to(config: Option<&Path>, pair: &Path) -> Result<Self, String> {
        let config = config.ok_or(
            "a directory of `try` has no settings file for a certificate; give a settings file with --config",
        )?;
        let folder = config.parent().unwrap_or(Path::new(""));
        Ok(Self {
            file: folder.join(NAME),
            config: config.to_owned(),
            pair: pair.to_owned(),
        })
    }

    /// The text of the file.
    fn text(&self) -> String {
        let pair = Value::String(self.pair.display().to_string());
        format!(
            "# Written by `gatewren cert install`; `gatewren cert install --remove` removes it.\n[tls]\nmode = \
             \"files\"\ncert = {pair}\nkey = {pair}\n"
        )
    }

    /// Fails if another settings file has a contradicting key in `[tls]`.
    pub fn may_be_written(&self) -> Result<(), String> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let beside = fs::read_dir(folder).into_iter().flatten().flatten();
        let beside = beside.map(|entry| entry.path());
        let others = beside.filter(|path| path.extension().is_some_and(|end| end == "toml"));
        let mut others: Vec<PathBuf> = others.filter(|path| *path != self.file).collect();
        others.push(self.config.clone());
        others.sort();
        for file in others {
            // A file that cannot be read or parsed is ignored here: the check of the settings reports it in full.
            let text = fs::read_to_string(&file).unwrap_or_default();
            let table: Table = text.parse().unwrap_or_default();
            let Some(Value::Table(tls)) = table.get("tls") else {
                continue;
            };
            if let Some((key, value)) = tls.iter().find(|(key, value)| !self.agrees(key, value)) {
                return Err(format!(
                    "{} sets tls.{key} = {value}, which conflicts with this; remove the section [tls] from it. \
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

    /// Writes the file unless it exists with the same text; returns whether it was written. Removes it again if
    /// the settings are invalid with it.
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
                "the settings would be invalid, so nothing was enabled: {error}"
            ));
        }
        Ok(true)
    }

    /// Removes the file; returns whether it existed.
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
