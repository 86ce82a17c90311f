//! The claims of a session id, which is signed: the agent, and what was negotiated.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use gatewren_base::config::is_instance_name;
use gatewren_wire::protocol::{
    APP_MEDIA_TYPE, APPS_EXTENSION, ClientCapabilities, PATCHES, Version,
};

/// The maximum length of an id; a longer one is not from this server.
const MAX_ID_BYTES: usize = 2_048;

/// The version of the claims' format. An id of another version is not read: its session has ended, and its client
/// starts a new one. A change of the format must increment this, and may add support for reading older versions.
const FORMAT: u32 = 1;

/// The claims of a session id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionClaims {
    #[serde(rename = "f")]
    format: u32,
    /// The session's name in memory, in the vault and in the audit.
    #[serde(rename = "i")]
    pub session: Uuid,
    /// The agent that it belongs to.
    #[serde(rename = "a")]
    pub agent: String,
    /// The negotiated revision.
    #[serde(rename = "v")]
    version: String,
    /// The client's capabilities, as far as this server ever uses them.
    #[serde(rename = "c")]
    capabilities: Map<String, Value>,
}

/// The part of an id that every format has.
#[derive(Deserialize)]
struct Form {
    #[serde(rename = "f")]
    format: u32,
}

impl SessionClaims {
    /// The session's name, formatted as a UUID.
    pub fn name(&self) -> Arc<str> {
        let mut digits = Uuid::encode_buffer();
        let name: &str = self.session.hyphenated().encode_lower(&mut digits);
        name.into()
    }

    /// The claims of a new session.
    pub fn new(agent: &str, version: Version, declared: &Map<String, Value>) -> Self {
        Self {
            format: FORMAT,
            session: Uuid::new_v4(),
            agent: agent.to_owned(),
            version: version.as_str().to_owned(),
            capabilities: filter_needed(version, declared),
        }
    }

    /// The negotiated revision.
    pub fn version(&self) -> Version {
        Version::negotiate(&self.version)
    }

    /// The client's capabilities.
    pub fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::new(self.capabilities.clone())
    }

    /// Returns the signed id: letters, digits, `-`, `_` and one dot. It begins with the name of the instance and `-`,
    /// if the instance has a name: a balancer finds the instance by the beginning of the id.
    pub fn sign(&self, instance: &str, key: &hmac::Key) -> String {
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default());
        let body = match instance {
            "" => claims,
            name => format!("{name}-{claims}"),
        };
        let tag = hmac::sign(key, body.as_bytes());
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Verifies an id that an instance of this server signed, in the current format.
    pub fn verify(id: &str, key: &hmac::Key) -> Option<Self> {
        let (body, tag) = id.split_once('.').filter(|_| id.len() <= MAX_ID_BYTES)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(key, body.as_bytes(), &tag).ok()?;
        let claims = URL_SAFE_NO_PAD.decode(without_instance(body)).ok()?;
        let form: Form = serde_json::from_slice(&claims).ok()?;
        if form.format != FORMAT {
            return None;
        }
        serde_json::from_slice(&claims).ok()
    }
}

/// Removes the name of an instance from the beginning of an id. Claims are a JSON object that begins with `{"f"`. In
/// base64 this has an upper case letter, which no name has, before the first `-`.
fn without_instance(body: &str) -> &str {
    match body.split_once('-') {
        Some((name, claims)) if is_instance_name(name) => claims,
        _ => body,
    }
}

/// Keeps only the capabilities that this server may use in the client's revision, so that an id stays short
/// whatever the client declares.
fn filter_needed(version: Version, declared: &Map<String, Value>) -> Map<String, Value> {
    let client = ClientCapabilities::new(declared.clone());
    // Elicitation was added in 2025-06-18, and means forms there; modes were added in 2025-11-25.
    let (form, url) = if version < Version::V2025_06_18 {
        (false, false)
    } else if version < Version::V2025_11_25 {
        (declared.contains_key("elicitation"), false)
    } else {
        (client.elicitation_form(), client.elicitation_url())
    };
    let named = |names: &[(&str, bool)]| {
        let held = names.iter().filter(|(_, held)| *held);
        let kept = held.map(|(name, _)| ((*name).to_owned(), Value::Object(Map::new())));
        kept.collect::<Map<_, _>>()
    };
    let mut kept = named(&[("sampling", client.sampling()), ("roots", client.roots())]);
    let modes = named(&[("form", form), ("url", url)]);
    if !modes.is_empty() {
        kept.insert("elicitation".to_owned(), Value::Object(modes));
    }
    if client.wants_patches() {
        let wanted = named(&[(PATCHES, true)]);
        kept.insert("experimental".to_owned(), Value::Object(wanted));
    }
    if client.shows_apps() {
        let apps = json!({ APPS_EXTENSION: { "mimeTypes": [APP_MEDIA_TYPE] } });
        kept.insert("extensions".to_owned(), apps);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::session_token::*;
    use serde_json::json;

    #[test]
    fn an_id_is_short_visible_and_only_ours() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let declared = json!({"elicitation": {"form": {}, "x": "y".repeat(9_000)}, "other": {}});
        let claims =
            SessionClaims::new("agent", Version::V2025_06_18, declared.as_object().unwrap());
        let id = claims.sign("", &key);
        assert!(
            id.len() < 400 && id.bytes().all(|b| (0x21..=0x7e).contains(&b)),
            "{id}"
        );
        assert_eq!(SessionClaims::verify(&id, &key).unwrap(), claims);
        assert!(claims.capabilities().elicitation_form());
        let other = hmac::Key::new(hmac::HMAC_SHA256, &[2; 32]);
        assert!(SessionClaims::verify(&id, &other).is_none());
        assert!(SessionClaims::verify(&id.replacen('.', "A.", 1), &key).is_none());
    }

    #[test]
    fn an_id_begins_with_its_instance_and_with_no_other() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        for _ in 0..50 {
            // Random claims: base64 may have `-` anywhere after the beginning.
            let claims = SessionClaims::new("agent", Version::V2025_11_25, &Map::new());
            let (plain, named) = (claims.sign("", &key), claims.sign("front1", &key));
            assert!(plain.starts_with("eyJmIjox") && named.starts_with("front1-eyJmIjox"));
            for id in [&plain, &named] {
                assert_eq!(SessionClaims::verify(id, &key).as_ref(), Some(&claims));
            }
            let (_, rest) = named.split_once('-').unwrap();
            for other in [rest, &format!("b-{rest}"), &format!("front1-{plain}")] {
                assert!(SessionClaims::verify(other, &key).is_none(), "{other}");
            }
        }
    }

    #[test]
    fn v7_a_client_is_asked_for_what_its_revision_knows() {
        let can = |version: Version, declared: &Value| {
            let client =
                SessionClaims::new("a", version, declared.as_object().unwrap()).capabilities();
            (client.elicitation_form(), client.elicitation_url())
        };
        let both = json!({"elicitation": {"form": {}, "url": {}}});
        assert_eq!(can(Version::V2025_03_26, &both), (false, false));
        assert_eq!(can(Version::V2025_06_18, &both), (true, false));
        assert_eq!(can(Version::V2025_11_25, &both), (true, true));
        let url = json!({"elicitation": {"url": {}}});
        assert_eq!(can(Version::V2025_06_18, &url), (true, false));
        assert_eq!(can(Version::V2025_11_25, &url), (false, true));
        assert_eq!(can(Version::V2025_06_18, &json!({})), (false, false));
    }

    #[test]
    fn z12_an_id_of_a_form_that_is_not_known_is_refused_and_nothing_breaks() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let signed = |claims: &Value| {
            let body = URL_SAFE_NO_PAD.encode(claims.to_string());
            let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, body.as_bytes()));
            SessionClaims::verify(&format!("{body}.{tag}"), &key)
        };
        let today = SessionClaims::new("a", Version::V2025_11_25, &Map::new());
        let mut claims = serde_json::to_value(&today).unwrap();
        assert_eq!(signed(&claims), Some(today));
        // The same claims may have another meaning in another format.
        for other in [
            json!(2),
            json!(u32::MAX),
            json!(u64::MAX),
            json!("1"),
            json!(null),
        ] {
            claims["f"] = other;
            assert_eq!(signed(&claims), None, "{claims}");
        }
        for other in [
            json!({"f": 2, "who": ["else"]}),
            json!({"f": 1}),
            json!([1]),
            json!(1),
        ] {
            assert_eq!(signed(&other), None, "{other}");
        }
    }
}
