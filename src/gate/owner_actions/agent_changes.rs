//! An agent's settings as JSON, and the differences between two versions of them.

use serde_json::{Map, Value, json};

use crate::auth::AgentSpec;
use gatewren_base::sys::rfc3339;
use gatewren_store::vault::Agent;

/// Returns all settings of a new agent, without its token.
pub fn whole(admission: &AgentSpec) -> Value {
    json!({
        "name": admission.name,
        "policy": admission.policy.preset.as_str(),
        "overrides": admission.policy.overrides,
        "space": admission.space,
        "expires": admission.expires_ms.map(rfc3339),
    })
}

/// Returns the settings that the owner can change, on one level: overrides next to the others.
fn parts(agent: &Agent) -> Map<String, Value> {
    let overrides: Option<Map<String, Value>> = serde_json::from_str(&agent.overrides).ok();
    let mut parts = overrides.unwrap_or_default();
    parts.insert("name".to_owned(), json!(agent.name));
    parts.insert("policy".to_owned(), json!(agent.preset.as_str()));
    parts.insert("space".to_owned(), json!(agent.space));
    parts.insert("expires".to_owned(), json!(agent.expires_ms.map(rfc3339)));
    parts
}

/// Returns the differences, each as `[before, after]`; null means that the setting is missing.
pub fn between(before: &Agent, after: &Agent) -> Map<String, Value> {
    let (before, mut after) = (parts(before), parts(after));
    let mut changes = Map::new();
    for (name, old) in before {
        let new = after.remove(&name).unwrap_or_default();
        if old != new {
            changes.insert(name, json!([old, new]));
        }
    }
    changes.extend(
        after
            .into_iter()
            .map(|(name, new)| (name, json!([null, new]))),
    );
    changes
}

/// Formats the differences, one a line.
pub fn lines(changes: &Map<String, Value>) -> Vec<String> {
    let line = |(name, change): (&String, &Value)| {
        format!(
            "  {}: {} -> {}",
            name.replace('_', " "),
            value_text(&change[0]),
            value_text(&change[1])
        )
    };
    changes.iter().map(line).collect()
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let members_text = members
                .iter()
                .map(|(name, mode)| format!("{name}={}", value_text(mode)));
            members_text.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Preset;

    fn agent(preset: Preset, overrides: &str) -> Agent {
        Agent {
            id: "agent_1".to_owned(),
            name: "a".to_owned(),
            token_sha256: [0; 32],
            preset,
            overrides: overrides.to_owned(),
            space: Some("*".to_owned()),
            created_ms: 0,
            expires_ms: None,
            revoked_ms: None,
            last_used_ms: None,
        }
    }

    #[test]
    fn only_what_differs_is_told() {
        let before = agent(
            Preset::Observe,
            r#"{"tools":{"a":"allow"},"calls_per_minute":5}"#,
        );
        let after = agent(
            Preset::Operate,
            r#"{"tools":{"a":"deny"},"networks":["10.0.0.0/8"]}"#,
        );
        let changes = between(&before, &after);
        assert_eq!(
            lines(&changes),
            [
                "  calls per minute: 5 -> -",
                "  networks: - -> 10.0.0.0/8",
                "  policy: observe -> operate",
                "  tools: a=allow -> a=deny"
            ]
        );
        assert!(between(&before, &before).is_empty());
    }
}
