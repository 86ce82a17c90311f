//! State that a client carries between two rounds of a call: signed, bound to the agent and the request, and
//! short-lived.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use gatewren_wire::protocol::{Params, RpcError};

/// The lifetime of sealed state; a question that is answered later must be asked again.
const LIFETIME_S: u64 = 15 * 60;

/// Seals and opens request state with a key that survives restarts.
pub struct StateSigner {
    key: hmac::Key,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    /// The expiry, in seconds since 1970.
    until: u64,
    /// The agent that it was issued to.
    who: String,
    /// The request: a digest of method and parameters.
    asked: String,
    state: Value,
}

impl StateSigner {
    /// Creates a sealer with this key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// Seals state for one agent and one request.
    pub fn seal(&self, state: Value, who: &str, asked: &str) -> String {
        let inner = Sealed {
            until: now_s() + LIFETIME_S,
            who: who.into(),
            asked: asked.into(),
            state,
        };
        self.sign(&inner)
    }

    fn sign(&self, inner: &Sealed) -> String {
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(inner).unwrap_or_default());
        let tag = hmac::sign(&self.key, body.as_bytes());
        format!("v1.{body}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Opens sealed state. Altered or expired state, and state of another agent or request, is refused.
    pub fn open(&self, sealed: &str, who: &str, asked: &str) -> Result<Value, RpcError> {
        let refuse = |why: &'static str| {
            RpcError::invalid_params(format!("requestState {why}; call again without it"))
        };
        let mut parts = sealed.splitn(3, '.');
        let (Some("v1"), Some(body), Some(tag)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refuse("was not issued by this server"));
        };
        let tag = URL_SAFE_NO_PAD
            .decode(tag)
            .map_err(|_| refuse("has been altered"))?;
        hmac::verify(&self.key, body.as_bytes(), &tag).map_err(|_| refuse("has been altered"))?;
        let bytes = URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| refuse("has been altered"))?;
        let inner: Sealed =
            serde_json::from_slice(&bytes).map_err(|_| refuse("has been altered"))?;
        match () {
            () if inner.until < now_s() => Err(refuse("has expired")),
            () if inner.who != who || inner.asked != asked => {
                Err(refuse("belongs to another request"))
            }
            () => Ok(inner.state),
        }
    }
}

/// A digest of a request, without the parameters that change between rounds.
pub fn digest_of(method: &str, params: &Params) -> String {
    let salient: BTreeMap<&str, &Value> = params.iter().collect();
    let text = serde_json::to_vec(&(method, salient)).unwrap_or_default();
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &text))
}

fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn r4_r5_only_the_same_agent_and_request_open_it() {
        let sealer = StateSigner::new(&[7; 32]);
        let carried = sealer.seal(json!({"step": 1}), "a", "q");
        assert_eq!(sealer.open(&carried, "a", "q").unwrap(), json!({"step": 1}));
        for (text, who, asked) in [
            (carried.as_str(), "b", "q"),
            (carried.as_str(), "a", "other"),
            (&format!("{carried}-TAMPERED"), "a", "q"),
            (&carried.replacen("v1.", "v1.A", 1), "a", "q"),
            ("", "a", "q"),
        ] {
            assert!(
                sealer.open(text, who, asked).is_err(),
                "{text} {who} {asked}"
            );
        }
        assert!(StateSigner::new(&[8; 32]).open(&carried, "a", "q").is_err());
    }
    #[test]
    fn r5_what_is_too_old_is_refused_although_its_seal_is_good() {
        let sealer = StateSigner::new(&[7; 32]);
        let carried = |until| {
            sealer.sign(&Sealed {
                until,
                who: "a".into(),
                asked: "q".into(),
                state: json!(1),
            })
        };
        assert!(sealer.open(&carried(now_s() + 60), "a", "q").is_ok());
        let error = sealer.open(&carried(now_s() - 1), "a", "q").unwrap_err();
        assert!(error.message.contains("expired"), "{error:?}");
    }

    #[test]
    fn r8_a_sealer_of_the_same_key_opens_it_after_a_restart() {
        let carried = StateSigner::new(&[7; 32]).seal(json!(1), "a", "q");
        assert!(StateSigner::new(&[7; 32]).open(&carried, "a", "q").is_ok());
    }
}
