//! Authenticates a request by its headers only: an unauthenticated body is never read.

use std::net::IpAddr;

use hyper::http::request::Parts;

#[cfg(feature = "everything")]
use super::bearer::bearer;
use super::bearer::{to_refusal, unauthorized};
use super::callers::Callers;
use super::refusal::Refusal;
use super::required_credentials::RequiredCredentials;
use crate::auth::{AccessEnd, AuthError, Principal};
use crate::http::RepeatedHeader;

/// How the callers of the door `Agent` are authenticated.
pub enum Authenticator {
    /// By the tokens that the owner created, and by cookies.
    Agents(Callers),
    /// Every caller is this principal: fixtures on loopback. It does not exist in a build without the fixtures.
    #[cfg(feature = "everything")]
    Anybody(Principal),
    /// By one token: fixtures that are reachable from other machines.
    #[cfg(feature = "everything")]
    Fixed(crate::auth::FixedToken),
}

impl Authenticator {
    /// The current principal of an authenticated agent.
    ///
    /// # Errors
    /// Why its access has ended.
    pub fn current(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        match self {
            Self::Agents(callers) => callers.current(who),
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => Ok(who.clone()),
        }
    }

    /// Waits until the policy or reach of an agent changes, and returns the new principal.
    ///
    /// # Errors
    /// Why its access has ended.
    pub async fn wait_for_change(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        match self {
            Self::Agents(callers) => callers.wait_for_change(who).await,
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => std::future::pending().await,
        }
    }

    /// Waits until an agent's access ends, and returns why: its token was revoked, replaced or has expired, or its
    /// address is no longer allowed.
    pub async fn wait_for_rejection(&self, who: &Principal) -> AccessEnd {
        match self {
            Self::Agents(callers) => callers.wait_for_rejection(who).await,
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => std::future::pending().await,
        }
    }

    /// Authenticates the sender of a request head. `repeated` is the last `Authorization` of its connection.
    pub fn identify(
        &self,
        required: RequiredCredentials,
        head: &Parts,
        from: IpAddr,
        repeated: &RepeatedHeader,
    ) -> Result<Principal, Refusal> {
        match self {
            Self::Agents(callers) if required == RequiredCredentials::Connect => {
                callers.identify_link(head, from)
            }
            Self::Agents(callers) => callers.identify(head, from, repeated),
            #[cfg(feature = "everything")]
            Self::Anybody(who) => Ok(who.clone()),
            #[cfg(feature = "everything")]
            Self::Fixed(required) => required
                .identify(bearer(&head.headers)?)
                .map_err(to_refusal),
        }
    }

    /// Whether a token is the one of the metrics. Fixtures have none.
    pub fn is_scraper(&self, token: &str) -> Result<bool, AuthError> {
        match self {
            Self::Agents(callers) => callers.scrapers.knows(token),
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => Ok(false),
        }
    }

    /// Authenticates the holder of a token that did not come over a network.
    pub fn identify_token(&self, token: Option<&str>) -> Result<Principal, Refusal> {
        let token = || token.ok_or_else(|| unauthorized("the agent's token is missing"));
        match self {
            Self::Agents(callers) => callers.agents.identify(token()?, None).map_err(to_refusal),
            #[cfg(feature = "everything")]
            Self::Anybody(who) => Ok(who.clone()),
            #[cfg(feature = "everything")]
            Self::Fixed(required) => required.identify(token()?).map_err(to_refusal),
        }
    }
}
