//! Profiles of `helper.toml`: sets of keys for a purpose. A key that the owner has set stays as it is.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::helper_file::{HelperEntry, HelperFile};
use gatewren_base::sys::files;

/// The directory of the backup target of the profile `home`.
const BACKUPS: &str = "/var/backups/gatewren";

/// The keys of the profile `home`, with their values.
const HOME: [(&str, &str); 5] = [
    ("updates", "\"apply\""),
    ("backup", "\"delete\""),
    ("storage", "\"on\""),
    ("cleanup", "\"on\""),
    ("lxc_manage", "\"on\""),
];

/// What the profile `home` means, for the question about it.
pub const MEANING: &str = "\
home lets the helper install updates, create and restore backups and snapshots, move and create containers, maintain
disks and free space on them, for agents whose policy allows it; an agent with the policy operate asks you first.
minimal leaves all of this off.";

/// A set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperProfile {
    /// The defaults: reading, and commands in containers.
    Minimal,
    /// What the owner of a server at home asks an agent for in the first week.
    Home,
}

impl HelperProfile {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Home => "home",
        }
    }
}

impl fmt::Display for HelperProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for HelperProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Minimal, Self::Home].into_iter();
        let mut found = known.filter(|one| one.word() == text);
        found
            .next()
            .ok_or_else(|| format!("{text:?} is neither minimal nor home"))
    }
}

/// The profile that a `helper.toml` has. One that cannot be read has none of the keys.
pub fn profile_of(path: &Path) -> HelperProfile {
    if home_keys(path).len() == HOME.len() {
        HelperProfile::Home
    } else {
        HelperProfile::Minimal
    }
}

/// The keys of the profile `home` that the file sets to its values. `init` removes no line of the owner's file, so the
/// owner must, to have the profile `minimal`.
pub fn home_keys(path: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let is_set = |(key, value): &(&'static str, &str)| {
        let set = table.get(*key);
        set.is_some_and(|set| set.to_string() == *value)
    };
    let set = HOME.into_iter().filter(is_set);
    set.map(|(key, _)| key).collect()
}

/// Sets the keys of a profile that `helper.toml` does not set; returns them. The backup target is a directory that root
/// owns.
///
/// # Errors
/// Fails if the file or the directory cannot be changed; the file is as before then.
pub fn apply_profile(path: PathBuf, profile: HelperProfile) -> Result<Vec<&'static str>, String> {
    if profile == HelperProfile::Minimal {
        return Ok(Vec::new());
    }
    let mut entries: Vec<HelperEntry> = HOME
        .into_iter()
        .map(|(key, value)| HelperEntry {
            key,
            value: value.to_owned(),
        })
        .collect();
    entries.push(HelperEntry {
        key: "backup_targets",
        value: format!("[\"local: {BACKUPS}\"]"),
    });
    let file = HelperFile::new(path);
    let unset = file.unset(entries)?;
    if unset.is_empty() {
        return Ok(Vec::new());
    }
    if unset.iter().any(|entry| entry.key == "backup_targets") {
        files::private_dir(Path::new(BACKUPS)).map_err(|e| e.to_string())?;
    }
    file.set(&unset, |_| true)?;
    Ok(unset.iter().map(|entry| entry.key).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn a_key_that_the_owner_has_set_stays_and_a_second_run_changes_nothing() {
        let scratch = Scratch::new();
        let path = scratch.join("helper.toml");
        let own = "updates = \"off\"\nbackup_targets = []\n";
        files::write_public(&path, own.as_bytes()).unwrap();
        let changed = apply_profile(path.clone(), HelperProfile::Home).unwrap();
        assert_eq!(changed, ["backup", "storage", "cleanup", "lxc_manage"]);
        assert_eq!(home_keys(&path), changed);
        assert_eq!(profile_of(&path), HelperProfile::Minimal);
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.starts_with(own), "{written}");
        files::write_public(&path, written.replace("\"off\"", "\"apply\"").as_bytes()).unwrap();
        assert_eq!(profile_of(&path), HelperProfile::Home);
        files::write_public(&path, written.as_bytes()).unwrap();
        let again = apply_profile(path.clone(), HelperProfile::Home);
        assert_eq!(again, Ok(vec![]));
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        assert_eq!(apply_profile(path, HelperProfile::Minimal), Ok(vec![]));
    }

    #[test]
    fn a_word_that_is_no_profile_is_refused() {
        assert_eq!("home".parse(), Ok(HelperProfile::Home));
        assert!("house".parse::<HelperProfile>().is_err());
    }
}
