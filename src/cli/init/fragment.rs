//! The settings that `init` writes, as a separate file in conf.d: the owner's own files stay unchanged.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use gatewren_base::config::{ResolvedSetting, Settings};
use gatewren_base::sys::files;

/// The name of the file: early in the order, so later files override it.
const NAME: &str = "10-init.toml";

/// The header of the file.
const HEAD: &str =
    "# Written by `gatewren init`, which overwrites it. Files later in the order override it.\n";

/// A key with its wanted value.
pub type WantedSetting = (&'static str, Value);

/// The file beside these settings.
pub struct InitFragment {
    settings: PathBuf,
    path: PathBuf,
}

impl InitFragment {
    /// Returns the file beside this settings file.
    pub fn next_to(settings: &Path) -> Self {
        let folder = settings.parent().unwrap_or(Path::new("")).join("conf.d");
        Self {
            settings: settings.to_owned(),
            path: folder.join(NAME),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the keys; returns those that had to be changed. Restores the file if the settings would be invalid,
    /// or if another file overrides it.
    pub fn write(&self, wanted_settings: &[WantedSetting]) -> Result<Vec<&'static str>, String> {
        let (_, resolved) = self.resolve_settings()?;
        let missing: Vec<&WantedSetting> = wanted_settings
            .iter()
            .filter(|wanted| !holds(&resolved, wanted))
            .collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.read()?;
        let mut table: Table = match &before {
            Some(text) => toml::from_str(text).map_err(|e| self.describe_error(&e))?,
            None => Table::new(),
        };
        for (key, value) in &missing {
            put(&mut table, key, value.clone());
        }
        let text = toml::to_string(&table).map_err(|e| self.describe_error(&e))?;
        self.replace(&format!("{HEAD}{text}"))?;
        if let Err(words) = self.is_in_force(&missing) {
            self.restore(before.as_deref())?;
            return Err(words);
        }
        Ok(missing.iter().map(|(key, _)| *key).collect())
    }

    fn is_in_force(&self, wanted_settings: &[&WantedSetting]) -> Result<(), String> {
        let (_, resolved) = self.resolve_settings()?;
        let Some((key, _)) = wanted_settings
            .iter()
            .find(|wanted| !holds(&resolved, wanted))
        else {
            return Ok(());
        };
        let place = resolved
            .iter()
            .find(|one| one.key == *key)
            .and_then(|one| one.place.clone());
        Err(match place {
            Some((file, line)) => {
                format!(
                    "{key} is set in {}:{line}, which overrides this; change it there",
                    file.display()
                )
            }
            None => format!("cannot set {key}"),
        })
    }

    fn resolve_settings(&self) -> Result<(Settings, Vec<ResolvedSetting>), String> {
        Settings::resolve(&self.settings).map_err(|e| e.to_string())
    }

    fn read(&self) -> Result<Option<String>, String> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.describe_error(&cause)),
        }
    }

    /// Replaces the file atomically: a server that reads it gets the old or the new one.
    fn replace(&self, text: &str) -> Result<(), String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        files::public_dir(folder)
            .and_then(|()| files::write_public(&self.path, text.as_bytes()))
            .map_err(|e| e.to_string())
    }

    fn restore(&self, before: Option<&str>) -> Result<(), String> {
        match before {
            Some(text) => self.replace(text),
            None => fs::remove_file(&self.path).map_err(|e| self.describe_error(&e)),
        }
    }

    fn describe_error(&self, cause: &dyn std::fmt::Display) -> String {
        format!("{}: {cause}", self.path.display())
    }
}

/// Whether a key already has the value.
fn holds(resolved: &[ResolvedSetting], (key, value): &WantedSetting) -> bool {
    let found = resolved.iter().find(|one| one.key == *key);
    let table: Option<Table> =
        found.and_then(|one| toml::from_str(&format!("value = {}", one.value)).ok());
    table.and_then(|mut table| table.remove("value")).as_ref() == Some(value)
}

/// Inserts a value at `section.name`, or at `name`.
fn put(table: &mut Table, key: &str, value: Value) {
    let Some((section, name)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let inner = table
        .entry(section)
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(inner) = inner {
        inner.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    fn names(name: &str) -> WantedSetting {
        ("names", Value::Array(vec![Value::String(name.to_owned())]))
    }

    #[test]
    fn it_is_written_once_and_gives_way_to_what_counts_more() {
        let scratch = Scratch::new();
        let settings = scratch.join("gatewren.toml");
        fs::write(&settings, "names = [\"old.lan\"]\n").unwrap();
        let fragment = InitFragment::next_to(&settings);
        assert_eq!(fragment.write(&[names("new.lan")]), Ok(vec!["names"]));
        assert_eq!(fragment.write(&[names("new.lan")]), Ok(vec![]));
        assert_eq!(Settings::load(&settings).unwrap().names, ["new.lan"]);
        let written = fs::read_to_string(fragment.path()).unwrap();
        fs::write(
            scratch.join("conf.d/90-mine.toml"),
            "names = [\"mine.lan\"]\n",
        )
        .unwrap();
        let refused = fragment.write(&[names("other.lan")]).unwrap_err();
        assert!(
            refused.contains("90-mine.toml:1, which overrides this"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(fragment.path()).unwrap(), written);
    }

    #[test]
    fn what_is_not_good_is_taken_back() {
        let scratch = Scratch::new();
        let settings = scratch.join("gatewren.toml");
        fs::write(&settings, "").unwrap();
        let fragment = InitFragment::next_to(&settings);
        let files: WantedSetting = ("tls.mode", Value::String("files".to_owned()));
        assert!(fragment.write(&[files]).unwrap_err().contains("tls.cert"));
        assert!(!fragment.path().exists());
    }
}
