//! The differences after reading the settings again: what takes effect at once, and what waits for a restart.

use super::key::Key;
use super::named::find_changed;
use super::reference::SETTINGS;
use super::settings::Settings;

/// The result of reading the settings again.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingsReload {
    /// The settings to apply now. Keys that need a restart keep their old values.
    pub settings: Settings,
    /// The keys whose values take effect, such as `limits.drain`, and the spaces and channels that changed.
    pub changed: Vec<String>,
    /// The keys whose new values take effect after a restart.
    pub waiting: Vec<String>,
}

impl Settings {
    /// Compares `self`, which is in effect, with the settings that were read.
    pub fn compare_with(&self, read: Self) -> SettingsReload {
        let differing = |key: &&Key<Self>| (key.write)(self) != (key.write)(&read);
        let (waiting, changed): (Vec<_>, Vec<_>) = SETTINGS
            .iter()
            .filter(differing)
            .partition(|key| key.needs_restart);
        let names = |keys: &[&Key<Self>]| keys.iter().map(|key| key.path_in(key.section)).collect();
        let (mut changed, waiting_names): (Vec<String>, _) = (names(&changed), names(&waiting));
        changed.extend(find_changed("spaces", &self.spaces, &read.spaces));
        changed.extend(find_changed("notify", &self.notify, &read.notify));
        let mut settings = read;
        for key in waiting {
            (key.copy)(&mut settings, self);
        }
        SettingsReload {
            settings,
            changed,
            waiting: waiting_names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::Space;
    use super::*;

    /// The keys that only take effect after a restart. All other keys must take effect at once.
    const AT_THE_START: [&str; 10] = [
        "listen",
        "state_dir",
        "tools.dialect",
        "lxc.lxcpath",
        "helper.socket",
        "sessions.instance",
        "workers.observer",
        "workers.notifier",
        "workers.sweeper",
        "workers.jobs",
    ];

    /// Returns another valid value for each key, as TOML.
    fn other_value(path: &str) -> &'static str {
        match path {
            "listen" => "[\"127.0.0.1:9\"]",
            "names" | "access.allowed_hosts" => "[\"other.lan\"]",
            "state_dir"
            | "tls.cert"
            | "tls.key"
            | "lxc.lxcpath"
            | "helper.socket"
            | "edge_jwt.jwks"
            | "access.required_header_value_file"
            | "access.health_path" => "\"/other\"",
            "tls.mode" => "\"files\"",
            "access.owner_on_mcp"
            | "access.http_sse"
            | "access.health_version"
            | "oauth.local_clients"
            | "metrics.loopback" => "true",
            "oauth.enabled" | "access.streaming" => "false",
            "sessions.instance" => "\"b\"",
            path if path.starts_with("workers.") => "false",
            "access.allowed_origins" => "[\"https://other.lan\"]",
            "access.required_header"
            | "edge_jwt.header"
            | "edge_jwt.audience"
            | "edge_jwt.issuer" => "\"x-other\"",
            "limits.trusted_proxies" => "[\"10.0.0.1\"]",
            "limits.body_limit" => "\"64KiB\"",
            "observer.units" => "[\"other-*\"]",
            "tools.dialect" => "\"startos\"",
            "log.level" => "\"debug\"",
            "limits.update_interval" => "\"700ms\"",
            path if path.starts_with("limits.max_")
                || path.starts_with("limits.a")
                || path.starts_with("limits.unauthenticated_")
                || path.ends_with("per_agent")
                || path.ends_with("total")
                || path == "state.keep_revisions"
                || path == "audit.keep_rows" =>
            {
                "3999"
            }
            _ => "\"47s\"",
        }
    }

    #[test]
    fn every_key_takes_effect_at_once_or_is_named_as_waiting() {
        let before = Settings::default();
        for key in SETTINGS {
            let path = key.path_in(key.section);
            let value = toml::de::DeValue::parse(other_value(&path)).unwrap();
            let mut read = before.clone();
            (key.read)(&mut read, value.get_ref()).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert_ne!(read, before, "{path}: another value is another setting");
            let change = before.compare_with(read.clone());
            let waits = AT_THE_START.contains(&path.as_str());
            let (expected, named, unnamed) = if waits {
                (&before, &change.waiting, &change.changed)
            } else {
                (&read, &change.changed, &change.waiting)
            };
            assert_eq!(&change.settings, expected, "{path}");
            assert_eq!(named, &[path], "it is named");
            assert!(unnamed.is_empty(), "{unnamed:?}");
        }
    }

    #[test]
    fn the_same_settings_are_no_change() {
        let settings = Settings::default();
        let change = settings.compare_with(settings.clone());
        assert!(change.changed.is_empty() && change.waiting.is_empty());
        assert_eq!(change.settings, settings);
    }

    #[test]
    fn spaces_that_came_went_or_are_others_are_named() {
        let space = |host| Space {
            containers: Vec::new(),
            host,
        };
        let with = |spaces: &[(&str, bool)]| Settings {
            spaces: spaces
                .iter()
                .map(|(name, host)| ((*name).to_owned(), space(*host)))
                .collect(),
            ..Settings::default()
        };
        let before = with(&[("a", true), ("b", true), ("c", true)]);
        let read = with(&[("b", false), ("c", true), ("d", true)]);
        let change = before.compare_with(read.clone());
        assert_eq!(change.changed, ["spaces.a", "spaces.b", "spaces.d"]);
        assert_eq!(change.settings, read);
    }
}
