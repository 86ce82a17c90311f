//! A policy: a preset, and what differs from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::glob::Glob;
use super::mode::Mode;
use super::network::Network;
use super::preset::Preset;
use super::risk::Risk;

/// What an agent may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Where it starts from.
    pub preset: Preset,
    /// What differs.
    pub overrides: Overrides,
}

/// What differs from a preset; kept in the vault as a JSON object, `{}` for nothing. What is not known in it makes
/// the whole policy unreadable, and its agent stays out: an override that is passed over could be the one that forbids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Only tools of these groups exist, and those that are named below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolsets: Option<Vec<String>>,
    /// What is said to single tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Mode>,
    /// What is said to whole classes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<Risk, Mode>,
    /// Only containers that fit one of these exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<Glob>>,
    /// Calls a minute, below the limit that holds for all agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Calls at once, below the limit that holds for all agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_calls: Option<u32>,
    /// Only from these addresses; from everywhere when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<Network>>,
}

impl Overrides {
    /// As a JSON object, to be kept; `{}` for nothing.
    pub fn to_text(&self) -> String {
        // Text keys and whole numbers only: nothing here can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Policy {
    /// Whether it says the same to every tool as another one, wherever that tool is used.
    pub fn has_tools_of(&self, other: &Self) -> bool {
        let said = |policy: &Self| {
            let Overrides {
                toolsets,
                tools,
                modes,
                ..
            } = policy.overrides.clone();
            (policy.preset, toolsets, tools, modes)
        };
        said(self) == said(other)
    }
}

impl From<Preset> for Policy {
    fn from(preset: Preset) -> Self {
        Self {
            preset,
            overrides: Overrides::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_read_as_they_are_written() {
        let text = r#"{"toolsets":["containers"],"tools":{"container_stop":"allow"},"modes":{"execute":"confirm"},"containers":["arr-*"],"calls_per_minute":60,"concurrent_calls":2,"networks":["10.0.0.0/8"]}"#;
        let overrides: Overrides = serde_json::from_str(text).unwrap();
        assert_eq!(overrides.to_text(), text);
        let none: Overrides = serde_json::from_str("{}").unwrap();
        assert_eq!(none, Overrides::default());
        assert_eq!(none.to_text(), "{}");
    }

    #[test]
    fn limits_change_no_tools() {
        let policy = |text: &str| Policy {
            preset: Preset::Operate,
            overrides: serde_json::from_str(text).unwrap(),
        };
        let none = policy("{}");
        let limits = r#"{"calls_per_minute":1,"concurrent_calls":1,"networks":["10.0.0.0/8"]}"#;
        assert!(none.has_tools_of(&policy(limits)));
        for other in [
            r#"{"toolsets":[]}"#,
            r#"{"tools":{"a":"deny"}}"#,
            r#"{"modes":{"read":"deny"}}"#,
        ] {
            assert!(!none.has_tools_of(&policy(other)), "{other}");
        }
        assert!(!none.has_tools_of(&Preset::Admin.into()));
    }

    #[test]
    fn an_override_that_is_not_known_is_not_passed_over() {
        for bad in [
            r#"{"tool":{}}"#,
            r#"{"modes":{"run":"deny"}}"#,
            r#"{"modes":{"read":"maybe"}}"#,
            r#"{"containers":["a/b"]}"#,
        ] {
            assert!(serde_json::from_str::<Overrides>(bad).is_err(), "{bad}");
        }
    }
}
