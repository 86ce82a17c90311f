//! The authenticated caller.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::grants::{GrantBook, GrantedCall};
use super::links::LinkKey;
use super::logins::LoginKey;
use gatewren_base::config::{Policy, Preset, Reach, WHOLE_SERVER};
use gatewren_store::vault::OWNER;

/// The id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a shared copy of the id.
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

/// An authenticated agent. [`super::agents::Agents::identify`] makes one from a token.
#[derive(Debug, Clone)]
pub struct Principal {
    pub(super) identity: Arc<AgentIdentity>,
    /// The address of its network connection, if there is one.
    pub(super) from: Option<IpAddr>,
    pub(super) expires_ms: Option<u64>,
    pub(super) grants: Option<Arc<GrantBook>>,
    /// How it authenticated.
    pub(super) way: AuthMethod,
}

/// How an agent authenticated.
#[derive(Debug, Clone, Copy)]
pub(super) enum AuthMethod {
    /// With its token, or without one where none is required.
    Token,
    /// With a cookie.
    Login(LoginKey),
    /// Over OAuth.
    Link(LinkKey),
}

/// The properties of an authenticated agent.
#[derive(PartialEq, Eq)]
pub(super) struct AgentIdentity {
    pub id: AgentId,
    pub name: Arc<str>,
    pub policy: Policy,
    pub space: Arc<str>,
    pub reach: Reach,
    /// The SHA-256 of its token.
    pub token: [u8; 32],
    /// The beginning of that hash, if there is a token.
    pub token_id: Option<Arc<str>>,
}

impl AgentIdentity {
    /// Returns the part of a token's SHA-256 that identifies the token.
    pub fn token_id([a, b, c, d, ..]: &[u8; 32]) -> Arc<str> {
        format!("{:08x}", u32::from_be_bytes([*a, *b, *c, *d])).into()
    }
}

impl fmt::Debug for AgentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Principal {
    /// Makes a principal without a token, with access to the host and all containers: for fixtures on loopback, and
    /// for the watchdog's probe.
    pub fn without_token(name: &str, policy: impl Into<Policy>) -> Self {
        Self {
            identity: Arc::new(AgentIdentity {
                id: AgentId::from(name),
                name: name.into(),
                policy: policy.into(),
                space: WHOLE_SERVER.into(),
                reach: Reach::everything(),
                token: [0; 32],
                token_id: None,
            }),
            from: None,
            expires_ms: None,
            grants: None,
            way: AuthMethod::Token,
        }
    }

    /// Makes a principal for the owner, with all permissions. Only used if the settings allow the owner's cookie
    /// for MCP.
    pub fn owner(login: LoginKey) -> Self {
        Self::without_token(OWNER, Preset::Admin).signed_in(login)
    }

    /// Returns the same agent under another policy and without the owner's grants, to judge a call by the policy that
    /// it was scheduled under. The result only ever narrows what the agent may do now.
    pub(crate) fn under_policy(&self, policy: Policy) -> Self {
        let identity = AgentIdentity {
            id: self.identity.id.clone(),
            name: self.identity.name.clone(),
            policy,
            space: self.identity.space.clone(),
            reach: self.identity.reach.clone(),
            token: self.identity.token,
            token_id: self.identity.token_id.clone(),
        };
        Self {
            identity: Arc::new(identity),
            grants: None,
            ..self.clone()
        }
    }

    /// Changes how it authenticated to a cookie.
    pub(super) fn signed_in(self, login: LoginKey) -> Self {
        let way = AuthMethod::Login(login);
        Self { way, ..self }
    }

    /// Changes how it authenticated to OAuth.
    pub(super) fn linked(self, link: LinkKey) -> Self {
        let way = AuthMethod::Link(link);
        Self { way, ..self }
    }

    /// Returns the OAuth link that it authenticated with, if any.
    pub fn link(&self) -> Option<LinkKey> {
        match self.way {
            AuthMethod::Link(link) => Some(link),
            AuthMethod::Token | AuthMethod::Login(_) => None,
        }
    }

    /// Returns the login that it authenticated with, if any.
    pub fn login(&self) -> Option<LoginKey> {
        match self.way {
            AuthMethod::Login(login) => Some(login),
            AuthMethod::Token | AuthMethod::Link(_) => None,
        }
    }

    /// Returns whether it is the owner, authenticated with the password and not with an agent's token.
    pub fn is_owner(&self) -> bool {
        matches!(self.way, AuthMethod::Login(_)) && self.identity.id.as_str() == OWNER
    }

    /// Returns the agent's id.
    pub fn agent_id(&self) -> &AgentId {
        &self.identity.id
    }

    /// Returns the name that the owner gave it.
    pub fn name(&self) -> &Arc<str> {
        &self.identity.name
    }

    /// Returns the identifier of its token, which is no secret: the beginning of the stored SHA-256, as hexadecimal
    /// digits.
    pub fn token_id(&self) -> Option<&Arc<str>> {
        self.identity.token_id.as_ref()
    }

    /// Returns the SHA-256 of its token, if it has one.
    pub(crate) fn token_hash(&self) -> Option<&[u8; 32]> {
        let identity = &self.identity;
        identity.token_id.as_ref().map(|_| &identity.token)
    }

    /// Returns its policy.
    pub fn policy(&self) -> &Policy {
        &self.identity.policy
    }

    /// Returns the preset of its policy.
    pub fn preset(&self) -> Preset {
        self.identity.policy.preset
    }

    /// Returns its space; [`WHOLE_SERVER`] means the host and all containers.
    pub fn space(&self) -> &Arc<str> {
        &self.identity.space
    }

    /// Returns whether a grant of the owner allows this call at this moment without asking.
    pub fn is_granted(&self, call: &GrantedCall<'_>) -> bool {
        let agent = self.identity.id.as_str();
        let granted = |grants: &Arc<GrantBook>| grants.holds(agent, call);
        self.grants.as_ref().is_some_and(granted)
    }

    /// Returns what it can access.
    pub fn reach(&self) -> &Reach {
        &self.identity.reach
    }
}
