//! Sets keys in `helper.toml`. Everything else in the owner's file stays, comments included.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use toml::de::DeTable;

use gatewren_base::config::HelperPolicy;
use gatewren_base::sys::files;

/// The most bytes of a `helper.toml`; a larger one is rejected, as the helper rejects it.
const MAX_BYTES: usize = 1 << 20;

/// A key of the file and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperEntry {
    /// The key.
    pub key: &'static str,
    /// The value, as TOML.
    pub value: String,
}

/// The file.
pub struct HelperFile {
    path: PathBuf,
}

impl HelperFile {
    /// Returns the file at this path, which may be absent.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the entries whose keys the file does not set.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn unset(&self, entries: Vec<HelperEntry>) -> Result<Vec<HelperEntry>, String> {
        let text = self.read()?.unwrap_or_default();
        let table = DeTable::parse(&text).map_err(|e| self.describe(&e))?;
        let is_set = |entry: &HelperEntry| {
            let mut keys = table.get_ref().keys();
            keys.any(|key| key.get_ref() == entry.key)
        };
        let unset = entries.into_iter().filter(|entry| !is_set(entry));
        Ok(unset.collect())
    }

    /// Sets the entries. Restores the file if the helper would reject it, or if the policy is not as expected.
    ///
    /// # Errors
    /// Fails if the file cannot be changed; it is as before then.
    pub fn set(
        &self,
        entries: &[HelperEntry],
        is_expected: impl Fn(&HelperPolicy) -> bool,
    ) -> Result<(), String> {
        let before = self.read()?;
        let mut after = before.clone().unwrap_or_default();
        for entry in entries {
            after = set_key(&after, entry)?;
        }
        self.replace(&after)?;
        let wrong = match HelperPolicy::load(&self.path) {
            Ok(policy) if is_expected(&policy) => return Ok(()),
            Ok(_) => {
                let keys: Vec<&str> = entries.iter().map(|entry| entry.key).collect();
                self.describe(&format!("cannot set {}", keys.join(", ")))
            }
            Err(wrong) => wrong.to_string(),
        };
        match before {
            Some(before) => self.replace(&before)?,
            None => fs::remove_file(&self.path).map_err(|e| self.describe(&e))?,
        }
        Err(wrong)
    }

    fn read(&self) -> Result<Option<String>, String> {
        if !self.path.exists() {
            return Ok(None);
        }
        let bytes = files::read_bounded(&self.path, MAX_BYTES).map_err(|e| e.to_string())?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|e| self.describe(&e))
    }

    /// Replaces the file atomically: the helper reads the old or the new one.
    fn replace(&self, text: &str) -> Result<(), String> {
        files::write_public(&self.path, text.as_bytes()).map_err(|e| e.to_string())
    }

    fn describe(&self, cause: &dyn Display) -> String {
        format!("{}: {cause}", self.path.display())
    }
}

/// Returns the text with the key set: in its place, below its commented sample, or at the end.
fn set_key(text: &str, entry: &HelperEntry) -> Result<String, String> {
    let HelperEntry { key, value } = entry;
    let line = format!("{key} = {value}");
    let table = DeTable::parse(text).map_err(|e| e.to_string())?;
    let mut entries = table.get_ref().iter();
    if let Some((found, value)) = entries.find(|(found, _)| found.get_ref() == key) {
        let mut text = text.to_owned();
        text.replace_range(found.span().start..value.span().end, &line);
        return Ok(text);
    }
    let sample = format!("#{key} = ");
    let mut lines: Vec<&str> = text.lines().collect();
    let below_sample = lines.iter().position(|line| line.starts_with(&sample));
    lines.insert(below_sample.map_or(lines.len(), |at| at + 1), &line);
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_set_where_it_is_and_all_else_stays() {
        let cases = [
            ("", "runtimes = [\"docker\"]\n"),
            (
                "# a\n#runtimes = [\"lxc\"]\n\npower = \"on\"\n",
                "# a\n#runtimes = [\"lxc\"]\nruntimes = [\"docker\"]\n\npower = \"on\"\n",
            ),
            (
                "power = \"on\"\n  runtimes=[ # mine\n 'lxc',\n] # end\n",
                "power = \"on\"\n  runtimes = [\"docker\"] # end\n",
            ),
        ];
        let entry = HelperEntry {
            key: "runtimes",
            value: "[\"docker\"]".to_owned(),
        };
        for (before, after) in cases {
            assert_eq!(set_key(before, &entry).as_deref(), Ok(after));
        }
        assert!(set_key("= 1", &entry).is_err());
    }
}
