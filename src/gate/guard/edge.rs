//! A second factor from an edge proxy: its signed token, which is checked before the agent's own.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, InvalidHeaderName};

use super::edge_keys::EdgeKeys;
use super::refusal::Refusal;
use crate::auth::{EdgeError, EdgeRules, KeySet};
use gatewren_base::config::EdgeJwt;

/// The check of the edge proxy's token.
pub struct EdgeCheck {
    header: HeaderName,
    rules: EdgeRules,
    keys: EdgeKeys,
}

impl EdgeCheck {
    /// Creates the check that the settings require; `None` if they require none. An incomplete configuration is an
    /// error and never ignored.
    pub fn of(settings: &EdgeJwt) -> Result<Option<Self>, InvalidHeaderName> {
        let Some(jwks) = settings.jwks.clone() else {
            return Ok(None);
        };
        let header = HeaderName::from_bytes(settings.header.as_bytes())?;
        let keys = EdgeKeys::new(jwks, settings.refresh);
        let rules = EdgeRules {
            audience: settings.audience.clone(),
            issuer: settings.issuer.clone(),
        };
        Ok(Some(Self {
            header,
            rules,
            keys,
        }))
    }

    /// Refuses a request with a missing or invalid token, and also one that cannot be checked at the moment.
    pub async fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut values = headers.get_all(&self.header).iter();
        let token = values.next().and_then(|value| value.to_str().ok());
        let (Some(token), None) = (token, values.next()) else {
            let words = format!(
                "the request did not come through the edge proxy: it must have one header {}",
                self.header
            );
            return Err(no_identity_refusal(&words));
        };
        let mut verdict = self.verdict(token, self.keys.current().await.as_deref());
        if verdict == Err(Some(EdgeError::UnknownKey)) {
            verdict = self.verdict(token, self.keys.newer().await.as_deref());
        }
        verdict.map_err(|error| match error {
            Some(error) => no_identity_refusal(&format!("the edge token is invalid: {error}")),
            None => no_identity_refusal(
                "the edge token cannot be checked: its keys are not available; see the log",
            ),
        })
    }

    fn verdict(&self, token: &str, keys: Option<&KeySet>) -> Result<(), Option<EdgeError>> {
        let keys = keys.ok_or(None)?;
        self.rules.check(token, keys).map_err(Some)
    }
}

fn no_identity_refusal(words: &str) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "edge_identity_required", words)
}
