//! A policy: a preset, and the differences from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::glob::Glob;
use super::mode::Mode;
use super::network::IpNetwork;
use super::preset::Preset;
use super::risk::Risk;

/// The permissions of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The preset.
    pub preset: Preset,
    /// The differences from the preset.
    pub overrides: Overrides,
}

/// The differences from a preset, stored in the vault as a JSON object; `{}` for none. An unknown field makes the
/// whole policy invalid, and its agent is rejected: the unknown override could be the one that denies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// The toolsets that exist for the agent. The tools named in `tools` exist too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolsets: Option<Vec<String>>,
    /// The modes of single tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Mode>,
    /// The modes of risk classes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<Risk, Mode>,
    /// Patterns of the containers that exist for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<Glob>>,
    /// Calls per minute, if lower than the general limit of each agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Concurrent calls, if lower than the general limit of each agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_calls: Option<u32>,
    /// The addresses that the agent may connect from; any address if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<IpNetwork>>,
}

impl Overrides {
    /// Returns the JSON object to store; `{}` for no differences.
    pub fn to_text(&self) -> String {
        // Only text keys and integers: serializing cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Policy {
    /// Returns whether both policies treat each tool the same, for any target.
    pub fn has_tools_of(&self, other: &Self) -> bool {
        let tool_rules = |policy: &Self| {
            let Overrides {
                toolsets,
                tools,
                modes,
                ..
            } = policy.overrides.clone();
            (policy.preset, toolsets, tools, modes)
        };
        tool_rules(self) == tool_rules(other)
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
