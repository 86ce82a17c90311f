//! What a client says that it can do.

use serde_json::{Map, Value, json};

/// A client's capabilities object, as it declared it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientCapabilities(Map<String, Value>);

impl ClientCapabilities {
    /// Takes what the client declared.
    pub fn new(declared: Map<String, Value>) -> Self {
        Self(declared)
    }

    /// Whether it samples.
    pub fn sampling(&self) -> bool {
        self.0.contains_key("sampling")
    }

    /// Whether it lists roots.
    pub fn roots(&self) -> bool {
        self.0.contains_key("roots")
    }

    /// Whether it shows forms: `elicitation` with `form`, or with no mode named.
    pub fn elicitation_form(&self) -> bool {
        self.mode("form")
            || self
                .0
                .get("elicitation")
                .is_some_and(|e| e.as_object().is_none_or(Map::is_empty))
    }

    /// Whether it opens a URL for its user.
    pub fn elicitation_url(&self) -> bool {
        self.mode("url")
    }

    fn mode(&self, name: &str) -> bool {
        self.0
            .get("elicitation")
            .and_then(|e| e.get(name))
            .is_some()
    }

    /// Whether it knows an extension, by the extension's name.
    pub fn extension(&self, name: &str) -> bool {
        let extensions = self.0.get("extensions");
        extensions.and_then(|known| known.get(name)).is_some()
    }

    /// Whether it knows an extension; the capabilities object that is missing when not.
    pub fn require_extension(&self, name: &str) -> Result<(), Value> {
        if self.extension(name) {
            Ok(())
        } else {
            Err(json!({ "extensions": { name: {} } }))
        }
    }

    /// Whether it can answer this request of ours; the capabilities object that is missing when not.
    pub fn require(&self, method: &str, params: &Value) -> Result<(), Value> {
        let url = params.get("mode").and_then(Value::as_str) == Some("url");
        match method {
            "sampling/createMessage" if !self.sampling() => Err(json!({ "sampling": {} })),
            "roots/list" if !self.roots() => Err(json!({ "roots": {} })),
            "elicitation/create" if url && !self.elicitation_url() => {
                Err(json!({ "elicitation": { "url": {} } }))
            }
            "elicitation/create" if !url && !self.elicitation_form() => {
                Err(json!({ "elicitation": { "form": {} } }))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(value: &Value) -> ClientCapabilities {
        ClientCapabilities::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn elicitation_without_a_mode_means_forms() {
        assert!(declared(&json!({"elicitation": {}})).elicitation_form());
        assert!(!declared(&json!({"elicitation": {"url": {}}})).elicitation_form());
        assert!(declared(&json!({"elicitation": {"url": {}}})).elicitation_url());
        assert!(!declared(&json!({})).elicitation_form());
    }
}
