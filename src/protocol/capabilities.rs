//! The capabilities that a client declares.

use serde_json::{Map, Value, json};

/// The name under which a client requests patches in resource update notifications.
pub const PATCHES: &str = "gatewren/patches";

/// The extension MCP Apps: cards beside the results of tools.
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of a card.
pub const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// A client's capabilities object, as it declared it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientCapabilities(Map<String, Value>);

impl ClientCapabilities {
    /// Wraps the capabilities that the client declared.
    pub fn new(declared: Map<String, Value>) -> Self {
        Self(declared)
    }

    /// The capabilities without those that need a request of the server to the client.
    #[must_use]
    pub fn without_requests(mut self) -> Self {
        for name in ["elicitation", "sampling", "roots"] {
            self.0.remove(name);
        }
        self
    }

    /// Returns whether it supports sampling.
    pub fn sampling(&self) -> bool {
        is_there(self.0.get("sampling"))
    }

    /// Returns whether it lists roots.
    pub fn roots(&self) -> bool {
        is_there(self.0.get("roots"))
    }

    /// Returns whether it shows forms: `elicitation` with `form`, or with no mode that we know.
    pub fn elicitation_form(&self) -> bool {
        let asks = is_there(self.0.get("elicitation"));
        asks && (self.mode("form") || !self.mode("url"))
    }

    /// Returns whether it opens a URL for its user.
    pub fn elicitation_url(&self) -> bool {
        self.mode("url")
    }

    fn mode(&self, name: &str) -> bool {
        is_there(self.0.get("elicitation").and_then(|e| e.get(name)))
    }

    /// Returns whether it supports the extension of this name.
    pub fn extension(&self, name: &str) -> bool {
        let extensions = self.0.get("extensions");
        extensions.and_then(|known| known.get(name)).is_some()
    }

    /// Returns whether it shows cards: [`APPS_EXTENSION`] with the media type of a card among its `mimeTypes`.
    pub fn shows_apps(&self) -> bool {
        let extensions = self.0.get("extensions");
        let apps = extensions.and_then(|known| known.get(APPS_EXTENSION));
        let types = apps.and_then(|apps| apps.get("mimeTypes")?.as_array());
        types.is_some_and(|types| types.iter().any(|one| *one == APP_MEDIA_TYPE))
    }

    /// Returns whether it wants to know how a resource has changed, in addition to the fact that it has:
    /// [`PATCHES`] among the `experimental` capabilities, or among the `extensions`.
    pub fn wants_patches(&self) -> bool {
        let experimental = self.0.get("experimental");
        is_there(experimental.and_then(|known| known.get(PATCHES))) || self.extension(PATCHES)
    }

    /// Checks that it supports an extension; the error is the missing capabilities object.
    pub fn require_extension(&self, name: &str) -> Result<(), Value> {
        if self.extension(name) {
            Ok(())
        } else {
            Err(json!({ "extensions": { name: {} } }))
        }
    }

    /// Checks that it can answer this request from the server; the error is the missing capabilities object.
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

/// Some clients list unsupported capabilities as `null`.
fn is_there(capability: Option<&Value>) -> bool {
    capability.is_some_and(|value| !value.is_null())
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

    #[test]
    fn cards_need_their_media_type() {
        let of = |settings: Value| declared(&json!({ "extensions": { APPS_EXTENSION: settings } }));
        assert!(of(json!({ "mimeTypes": ["text/x", APP_MEDIA_TYPE] })).shows_apps());
        for settings in [
            json!({}),
            json!(null),
            json!({ "mimeTypes": APP_MEDIA_TYPE }),
            json!({ "mimeTypes": ["text/html"] }),
        ] {
            assert!(!of(settings.clone()).shows_apps(), "{settings}");
        }
        assert!(!declared(&json!({})).shows_apps());
    }

    #[test]
    fn a_capability_that_is_null_is_none() {
        let nothing = declared(&json!({"sampling": null, "roots": null, "elicitation": null}));
        assert!(!nothing.sampling() && !nothing.roots());
        assert!(!nothing.elicitation_form() && !nothing.elicitation_url());
        let url = declared(&json!({"elicitation": {"form": null, "url": {}}}));
        assert!(url.elicitation_url() && !url.elicitation_form());
    }
}
