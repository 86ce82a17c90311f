//! Who asks, from the headers alone: a stranger's body is never read.

use std::net::IpAddr;

use hyper::http::request::Parts;

use super::bearer::{bearer, refused, unauthorized};
use super::callers::Callers;
use super::door::Door;
use super::refusal::Refusal;
use crate::auth::{AuthError, Principal};

/// How callers of the door `Agent` are known.
pub enum Identity {
    /// By the tokens that the owner gave out, and by cookies.
    Agents(Callers),
    /// Everybody is this one: fixtures on loopback. A build without them has no such door.
    #[cfg(feature = "everything")]
    Anybody(Principal),
    /// By one token: fixtures that can be reached from elsewhere.
    #[cfg(feature = "everything")]
    Fixed(crate::auth::FixedToken),
}

impl Identity {
    /// An agent as it would come in now, if it would.
    pub fn current(&self, who: &Principal) -> Option<Principal> {
        match self {
            Self::Agents(callers) => callers.current(who),
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => Some(who.clone()),
        }
    }

    /// Waits until an agent would come in with another policy or reach: it as it would then; `None` when it would
    /// not come in any more.
    pub async fn changed(&self, who: &Principal) -> Option<Principal> {
        match self {
            Self::Agents(callers) => callers.changed(who).await,
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => std::future::pending().await,
        }
    }

    /// Waits until an agent would no longer come in: its token was revoked, replaced or has expired, or it may not
    /// come from where it is.
    pub async fn expelled(&self, who: &Principal) {
        match self {
            Self::Agents(callers) => callers.expelled(who).await,
            #[cfg(feature = "everything")]
            Self::Anybody(_) | Self::Fixed(_) => std::future::pending().await,
        }
    }

    /// Identifies the sender of a head.
    pub fn identify(&self, door: Door, head: &Parts, from: IpAddr) -> Result<Principal, Refusal> {
        match self {
            Self::Agents(callers) if door == Door::Connect => callers.identify_link(head, from),
            Self::Agents(callers) => callers.identify(head, from),
            #[cfg(feature = "everything")]
            Self::Anybody(who) => Ok(who.clone()),
            #[cfg(feature = "everything")]
            Self::Fixed(door) => door.identify(bearer(&head.headers)?).map_err(refused),
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

    /// Identifies the holder of a token that came in another way, over no network.
    pub fn identify_token(&self, token: Option<&str>) -> Result<Principal, Refusal> {
        let token = || token.ok_or_else(|| unauthorized("there is no token of an agent"));
        match self {
            Self::Agents(callers) => callers.agents.identify(token()?, None).map_err(refused),
            #[cfg(feature = "everything")]
            Self::Anybody(who) => Ok(who.clone()),
            #[cfg(feature = "everything")]
            Self::Fixed(door) => door.identify(token()?).map_err(refused),
        }
    }
}
