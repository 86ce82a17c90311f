//! Who is asking, once that is known.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::grants::{GrantBook, GrantedCall};
use super::links::LinkKey;
use super::logins::LoginKey;
use crate::config::{Policy, Preset, Reach, WHOLE_BOX};
use crate::vault::OWNER;

/// The id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same to be kept.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl From<&str> for AgentId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An agent that has proved who it is: [`super::agents::Agents::identify`] makes one from a token.
#[derive(Debug, Clone)]
pub struct Principal {
    pub(super) identity: Arc<Identity>,
    /// Where it came in from, if a network lies between.
    pub(super) from: Option<IpAddr>,
    pub(super) expires_ms: Option<u64>,
    pub(super) grants: Option<Arc<GrantBook>>,
    /// How it came in.
    pub(super) way: Way,
}

/// How an agent came in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// With its token, or without any where none is asked for.
    Token,
    /// With a cookie.
    Login(LoginKey),
    /// Over OAuth.
    Link(LinkKey),
}

/// What is known of an agent that came in.
#[derive(PartialEq, Eq)]
pub(super) struct Identity {
    pub id: AgentId,
    pub name: Arc<str>,
    pub policy: Policy,
    pub space: Arc<str>,
    pub reach: Reach,
    /// The SHA-256 of its token, by which it is known again.
    pub token: [u8; 32],
    /// The beginning of that, where there is a token.
    pub token_id: Option<Arc<str>>,
}

impl Identity {
    /// What tells a token from others, of its SHA-256.
    pub fn token_id([a, b, c, d, ..]: &[u8; 32]) -> Arc<str> {
        format!("{:08x}", u32::from_be_bytes([*a, *b, *c, *d])).into()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Principal {
    /// One that no token stands for, and that reaches the whole box: fixtures on loopback, and the watchdog's own
    /// probe.
    pub fn without_token(name: &str, preset: Preset) -> Self {
        Self {
            identity: Arc::new(Identity {
                id: AgentId::from(name),
                name: name.into(),
                policy: preset.into(),
                space: WHOLE_BOX.into(),
                reach: Reach::everything(),
                token: [0; 32],
                token_id: None,
            }),
            from: None,
            expires_ms: None,
            grants: None,
            way: Way::Token,
        }
    }

    /// The owner, who may do everything: only where the settings let it in like an agent.
    pub fn owner(login: LoginKey) -> Self {
        Self::without_token(OWNER, Preset::Admin).signed_in(login)
    }

    /// The same, come in with a cookie.
    pub(super) fn signed_in(self, login: LoginKey) -> Self {
        let way = Way::Login(login);
        Self { way, ..self }
    }

    /// The same, come in over OAuth.
    pub(super) fn linked(self, link: LinkKey) -> Self {
        let way = Way::Link(link);
        Self { way, ..self }
    }

    /// The OAuth link that it came in by, if that is how.
    pub fn link(&self) -> Option<LinkKey> {
        match self.way {
            Way::Link(link) => Some(link),
            Way::Token | Way::Login(_) => None,
        }
    }

    /// The cookie that it came in with, if that is how.
    pub fn login(&self) -> Option<LoginKey> {
        match self.way {
            Way::Login(login) => Some(login),
            Way::Token | Way::Link(_) => None,
        }
    }

    /// Whether no agent's token stands behind it, but the owner's password.
    pub fn is_owner(&self) -> bool {
        matches!(self.way, Way::Login(_)) && self.identity.id.as_str() == OWNER
    }

    /// The agent's id.
    pub fn agent_id(&self) -> &AgentId {
        &self.identity.id
    }

    /// What its owner calls it.
    pub fn name(&self) -> &Arc<str> {
        &self.identity.name
    }

    /// What tells its token from its other ones, and is no secret: the beginning of the SHA-256 that is kept of
    /// it, as hexadecimal digits.
    pub fn token_id(&self) -> Option<&Arc<str>> {
        self.identity.token_id.as_ref()
    }

    /// What it may do.
    pub fn policy(&self) -> &Policy {
        &self.identity.policy
    }

    /// Where its policy starts from.
    pub fn preset(&self) -> Preset {
        self.identity.policy.preset
    }

    /// The space that it is kept in; [`WHOLE_BOX`] is everything.
    pub fn space(&self) -> &Arc<str> {
        &self.identity.space
    }

    /// Whether its owner allows it, at this moment and for a while, to make this call without asking.
    pub fn is_granted(&self, call: &GrantedCall<'_>) -> bool {
        let agent = self.identity.id.as_str();
        let granted = |grants: &Arc<GrantBook>| grants.holds(agent, call);
        self.grants.as_ref().is_some_and(granted)
    }

    /// What of the box there is for it.
    pub fn reach(&self) -> &Reach {
        &self.identity.reach
    }
}
