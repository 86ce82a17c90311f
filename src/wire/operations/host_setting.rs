//! Settings of the host: name, time zone, language, keyboard, CPU frequency governor and compressed swap.

use serde::{Deserialize, Serialize};

use super::text_type::text_type;

/// A change of one setting of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum HostSetting {
    /// The host's names.
    Hostname {
        /// The network name; unchanged when absent.
        #[serde(default)]
        hostname: Option<HostName>,
        /// The display name; unchanged when absent, removed when empty.
        #[serde(default)]
        pretty: Option<String>,
    },
    /// The time zone.
    Timezone {
        /// A name of the tz database, such as `Europe/Vienna`.
        zone: SettingWord,
    },
    /// The system language.
    Language {
        /// A locale, such as `de_AT.UTF-8`.
        locale: SettingWord,
    },
    /// The keyboard layout, also on the console.
    Keyboard(Keyboard),
    /// The CPU frequency governor.
    Governor {
        /// The kernel's name of a governor, such as `powersave`.
        governor: SettingWord,
    },
    /// Whether compressed swap in memory is enabled, until the next boot.
    Zram {
        /// Whether it is enabled.
        on: bool,
    },
}

/// A keyboard as XKB names it (xkeyboard-config(7)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyboard {
    /// The layout, such as `de`.
    pub layout: SettingWord,
    /// The variant, such as `nodeadkeys`.
    #[serde(default)]
    pub variant: Option<SettingWord>,
    /// The model, such as `pc105`.
    #[serde(default)]
    pub model: Option<SettingWord>,
    /// Options, such as `ctrl:nocaps`.
    #[serde(default)]
    pub options: Vec<SettingWord>,
}

impl HostSetting {
    /// The operation's name in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hostname { .. } => "set_hostname",
            Self::Timezone { .. } => "set_timezone",
            Self::Language { .. } => "set_language",
            Self::Keyboard(_) => "set_keyboard",
            Self::Governor { .. } => "set_governor",
            Self::Zram { .. } => "set_zram",
        }
    }
}

text_type!(
    /// A host name: labels of lowercase letters, digits and hyphens, separated by dots, at most 64 bytes (RFC 1123, and
    /// the kernel's limit).
    HostName,
    { "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$" },
    is_host_name,
    "a host name is at most 64 lowercase letters, digits and hyphens, such as nas or nas.home.arpa; not a number, and \
     not localhost"
);

text_type!(
    /// A setting's value: 1 to 64 of `A-Z a-z 0-9 _ . @ + : / -`, beginning with a letter or a digit, and without
    /// `..`. It is never parsed as an option, and it cannot leave a directory.
    SettingWord,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9_.@+:/-]{0,63}$" },
    |word| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.@+:/-".contains(&b);
        let begins_well = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        begins_well && word.len() <= 64 && word.bytes().all(plain) && !word.contains("..")
    },
    "invalid name of such a setting: use at most 64 letters, digits and _ . @ + : / -"
);

impl HostName {
    /// The first label, which is the name without a domain.
    pub fn short(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }
}

fn is_host_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().next_back()];
        let ends_well = ends.iter().all(|end| end.is_some_and(plain));
        ends_well && label.len() <= 63 && label.bytes().all(|b| plain(b) || b == b'-')
    };
    let numbers = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    name.len() <= 64 && name.split('.').all(label) && !numbers && name != "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_one_in_every_file_that_it_comes_into() {
        for good in ["nas", "nas-2.home.arpa", "0x", "a"] {
            assert!(HostName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let long = format!("{}.{}", "a".repeat(63), "b");
        for bad in [
            "",
            "-a",
            "a-",
            "A",
            "a_b",
            "a b",
            "a\nb",
            "a..b",
            ".a",
            "a.",
            "1.2.3.4",
            "localhost",
            "ä",
            &long,
        ] {
            assert!(HostName::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        let name = HostName::try_from("nas.home.arpa".to_owned()).unwrap();
        assert_eq!(name.short(), "nas");
    }

    #[test]
    fn a_word_is_never_an_option_or_a_way_out() {
        for good in [
            "Europe/Vienna",
            "de_AT.UTF-8",
            "sr_RS@latin",
            "ctrl:nocaps",
            "Etc/GMT+5",
        ] {
            assert!(SettingWord::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "/etc/passwd",
            "a/../b",
            "a b",
            "a\"b",
            "a=b",
            "a\nb",
            "a$(b)",
        ] {
            assert!(SettingWord::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
