//! A session's id says all about it, signed: so a session outlives a restart of the server.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::protocol::{ClientCapabilities, Version};

/// An id is never longer than this; a longer one is not ours.
const MAX_ID_BYTES: usize = 2_048;

/// What a session id says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// Names the session in memory and among the revoked.
    #[serde(rename = "i")]
    pub session: Uuid,
    /// The agent that it belongs to.
    #[serde(rename = "a")]
    pub agent: String,
    /// The revision settled on.
    #[serde(rename = "v")]
    version: String,
    /// What the client can do, of what we ever ask.
    #[serde(rename = "c")]
    capabilities: Map<String, Value>,
    /// Seconds since 1970.
    #[serde(rename = "x")]
    pub expires_s: u64,
}

impl Claims {
    /// Claims of a new session.
    pub fn new(
        agent: &str,
        version: Version,
        declared: &Map<String, Value>,
        lifetime_s: u64,
    ) -> Self {
        Self {
            session: Uuid::new_v4(),
            agent: agent.to_owned(),
            version: version.as_str().to_owned(),
            capabilities: needed(declared),
            expires_s: now_s().saturating_add(lifetime_s),
        }
    }

    /// The revision settled on.
    pub fn version(&self) -> Version {
        Version::negotiate(&self.version)
    }

    /// What the client can do.
    pub fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::new(self.capabilities.clone())
    }

    /// The id: letters, digits, `-`, `_` and one dot.
    pub fn sign(&self, key: &hmac::Key) -> String {
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default());
        let tag = hmac::sign(key, body.as_bytes());
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Whether its time is over.
    pub fn has_expired(&self) -> bool {
        self.expires_s <= now_s()
    }

    /// Reads an id that this server signed and that has not expired.
    pub fn verify(id: &str, key: &hmac::Key) -> Option<Self> {
        let (body, tag) = id.split_once('.').filter(|_| id.len() <= MAX_ID_BYTES)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(key, body.as_bytes(), &tag).ok()?;
        let claims: Self = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
        (!claims.has_expired()).then_some(claims)
    }
}

/// Only what we may ask a client for, so that an id stays short whatever the client declares.
fn needed(declared: &Map<String, Value>) -> Map<String, Value> {
    let empty = || Value::Object(Map::new());
    let mut kept = Map::new();
    for name in ["sampling", "roots"] {
        if declared.contains_key(name) {
            kept.insert(name.to_owned(), empty());
        }
    }
    if let Some(elicitation) = declared.get("elicitation") {
        let modes = ["form", "url"]
            .into_iter()
            .filter(|mode| elicitation.get(*mode).is_some());
        let modes = modes.map(|mode| (mode.to_owned(), empty())).collect();
        kept.insert("elicitation".to_owned(), Value::Object(modes));
    }
    kept
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_is_short_visible_and_only_ours() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let declared = json!({"elicitation": {"form": {}, "x": "y".repeat(9_000)}, "other": {}});
        let claims = Claims::new(
            "agent",
            Version::V2025_06_18,
            declared.as_object().unwrap(),
            60,
        );
        let id = claims.sign(&key);
        assert!(
            id.len() < 400 && id.bytes().all(|b| (0x21..=0x7e).contains(&b)),
            "{id}"
        );
        assert_eq!(Claims::verify(&id, &key).unwrap(), claims);
        assert!(claims.capabilities().elicitation_form());
        let other = hmac::Key::new(hmac::HMAC_SHA256, &[2; 32]);
        assert!(Claims::verify(&id, &other).is_none());
        assert!(Claims::verify(&id.replacen('.', "A.", 1), &key).is_none());
        let old = Claims {
            expires_s: now_s() - 1,
            ..claims
        };
        assert!(Claims::verify(&old.sign(&key), &key).is_none());
    }
}
