//! Settings of the host: name, time zone, language, keyboard, CPU frequency governor and compressed swap.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

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

/// A host name: labels of lowercase letters, digits and hyphens, separated by dots, at most 64 bytes (RFC 1123, and
/// the kernel's limit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// A setting's value: 1 to 64 of `A-Z a-z 0-9 _ . @ + : / -`, beginning with a letter or a digit, and without `..`.
/// It is never parsed as an option, and it cannot leave a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SettingWord(String);

/// A text that is no valid name or value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidSetting(&'static str);

/// The shapes of both types as patterns of JSON Schema (ECMA-262).
const HOSTNAME: &str =
    "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$";
const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9_.@+:/-]{0,63}$";

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first label, which is the name without a domain.
    pub fn short(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }
}

impl SettingWord {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSetting {}

impl TryFrom<String> for HostName {
    type Error = InvalidSetting;

    fn try_from(name: String) -> Result<Self, InvalidSetting> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let label = |label: &str| {
            let ends = [label.bytes().next(), label.bytes().next_back()];
            let ends_well = ends.iter().all(|end| end.is_some_and(plain));
            ends_well && label.len() <= 63 && label.bytes().all(|b| plain(b) || b == b'-')
        };
        let numbers = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if name.len() <= 64 && name.split('.').all(label) && !numbers && name != "localhost" {
            return Ok(Self(name));
        }
        Err(InvalidSetting(
            "a host name is at most 64 lowercase letters, digits and hyphens, such as nas or nas.home.arpa; not a \
             number, and not localhost",
        ))
    }
}

impl TryFrom<String> for SettingWord {
    type Error = InvalidSetting;

    fn try_from(word: String) -> Result<Self, InvalidSetting> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.@+:/-".contains(&b);
        let begins_well = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && word.len() <= 64 && word.bytes().all(plain) && !word.contains("..") {
            return Ok(Self(word));
        }
        Err(InvalidSetting(
            "invalid name of such a setting: use at most 64 letters, digits and _ . @ + : / -",
        ))
    }
}

/// The implementations that both types share.
macro_rules! names {
    ($($kind:ident $pattern:ident),+) => {
        $(
            impl From<$kind> for String {
                fn from(name: $kind) -> Self {
                    name.0
                }
            }

            impl schemars::JsonSchema for $kind {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($kind).into()
                }

                fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    schemars::json_schema!({ "type": "string", "pattern": $pattern })
                }
            }
        )+
    };
}

names!(HostName HOSTNAME, SettingWord WORD);

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
