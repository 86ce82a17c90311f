//! The value of each key, and where it was set.

use std::collections::HashMap;
use std::path::PathBuf;

use super::reading::{SettingsText, places};
use super::reference::SETTINGS;
use super::settings::Settings;
use super::{channel_keys, named, space_keys};

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSetting {
    /// Its path, such as `limits.drain`.
    pub key: String,
    /// The value as TOML.
    pub value: String,
    /// The file and line that set the value; `None` for the default.
    pub place: Option<(PathBuf, usize)>,
    /// Whether a new value takes effect only after a restart.
    pub needs_restart: bool,
}

/// Returns all keys of the settings in the order of the reference, then those of each space and channel.
pub(super) fn resolve_settings(
    settings: &Settings,
    files: &[SettingsText],
) -> Vec<ResolvedSetting> {
    let mut set = HashMap::new();
    for file in files {
        // A later value replaces an earlier one.
        let keys = places(file).into_iter().map(|(section, name, line)| {
            let place = (file.path().to_owned(), line);
            ((section, name), place)
        });
        set.extend(keys);
    }
    let place =
        |section: &str, name: &str| set.get(&(section.to_owned(), name.to_owned())).cloned();
    let own = SETTINGS.iter().map(|key| ResolvedSetting {
        key: key.path_in(key.section),
        value: (key.write)(settings),
        place: place(key.section, key.name),
        needs_restart: key.needs_restart,
    });
    let spaces = named::values("spaces", space_keys::KEYS, &settings.spaces);
    let channels = named::values("notify", channel_keys::KEYS, &settings.notify);
    let named = spaces.into_iter().chain(channels);
    let named = named.map(|(section, name, value, needs_restart)| ResolvedSetting {
        key: format!("{section}.{name}"),
        value,
        place: place(&section, name),
        needs_restart,
    });
    own.chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Scratch;

    #[test]
    fn each_key_is_told_with_the_place_that_counts() {
        let scratch = Scratch::new();
        let (main, later) = (scratch.join("gatewren.toml"), scratch.join("conf.d/1.toml"));
        std::fs::create_dir(scratch.join("conf.d")).unwrap();
        let first = "names = [\"box.lan\"]\n[limits]\ndrain = \"9s\"\nagent_calls = 7\n\n[spaces.den]\nhost = true\n";
        std::fs::write(&main, first).unwrap();
        std::fs::write(&later, "[limits]\n\ndrain = \"8s\"\n").unwrap();
        let (settings, resolved) = Settings::resolve(&main).unwrap();
        assert_eq!(Settings::load(&main), Ok(settings));
        let of = |key: &str| {
            let mut found = resolved.iter().filter(|found| found.key == key);
            let one = found.next().unwrap();
            assert!(found.next().is_none(), "{key} twice");
            (one.value.as_str(), one.place.clone(), one.needs_restart)
        };
        assert_eq!(
            of("names"),
            ("[\"box.lan\"]", Some((main.clone(), 1)), false)
        );
        assert_eq!(of("limits.drain"), ("\"8s\"", Some((later, 3)), false));
        assert_eq!(
            of("limits.agent_calls"),
            ("7", Some((main.clone(), 4)), false)
        );
        assert_eq!(of("limits.agent_rate"), ("600000", None, false));
        assert_eq!(of("state_dir"), ("\"/var/lib/gatewren\"", None, true));
        assert_eq!(of("spaces.den.host"), ("true", Some((main, 7)), false));
        assert_eq!(of("spaces.den.containers"), ("[]", None, false));
        assert_eq!(resolved.len(), SETTINGS.len() + 2);
    }
}
