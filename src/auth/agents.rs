//! From a token to the agent behind it, without asking the disk.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::grants::GrantBook;
use super::principal::{AgentId, Identity, Principal};
use super::token::{Token, TokenHash};
use crate::config::{Overrides, Policy, Reach, Spaces, WHOLE_BOX};
use crate::sys::now_ms;
use crate::vault::{Agent, Vault, VaultError};

/// How exactly it is known when an agent was last seen.
const TOUCH_EVERY_MS: u64 = 60_000;

/// Why nobody comes in with this token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthError {
    /// It is no token.
    Malformed,
    /// No agent has it.
    Unknown,
    /// Its time is over.
    Expired,
    /// Its owner ended it.
    Revoked,
    /// Its agent is kept in no space, or in one that is not there.
    NoSpace,
    /// Its agent's policy cannot be read.
    Unreadable,
    /// The vault cannot be asked at the moment; the log says why.
    Unavailable,
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "this is not a whole gatewren token; copy it again, all 52 characters from gw_ on"
            }
            Self::Unknown => "no agent has this token; ask the owner of the box for a new one",
            Self::Expired => "this token has expired; ask the owner of the box for a new one",
            Self::Revoked => "this token was revoked by the owner of the box",
            Self::NoSpace => {
                "this agent is kept in no space of this box; its owner gives it one with gatewren agent edit"
            }
            Self::Unreadable => {
                "this agent's policy cannot be read; its owner writes it again with gatewren agent edit"
            }
            Self::Unavailable => "tokens cannot be checked at the moment; try again soon",
        })
    }
}

impl std::error::Error for AuthError {}

/// All agents in memory, read again whenever the vault says that they changed.
pub struct Agents {
    vault: Vault,
    spaces: Spaces,
    changes: watch::Receiver<u64>,
    known: RwLock<Arc<Known>>,
    grants: Arc<GrantBook>,
}

/// The agents as they were at one state of the vault.
struct Known {
    state: u64,
    by_token: HashMap<[u8; 32], Record>,
}

struct Record {
    identity: Result<Arc<Identity>, AuthError>,
    id: AgentId,
    expires_ms: Option<u64>,
    revoked: bool,
    touched_ms: AtomicU64,
}

impl Agents {
    /// Reads all agents.
    pub fn new(vault: Vault, spaces: Spaces) -> Result<Self, VaultError> {
        let changes = vault.agents().changes();
        let known = Known::read(&vault, &spaces, *changes.borrow())?;
        Ok(Self {
            grants: Arc::new(GrantBook::new(vault.clone())?),
            vault,
            spaces,
            changes,
            known: RwLock::new(Arc::new(known)),
        })
    }

    /// The agent that a `Bearer` token belongs to.
    pub fn identify(&self, bearer: &str) -> Result<Principal, AuthError> {
        self.identify_at(bearer, now_ms())
    }

    /// An agent as it would come in now, by its id: for what runs on its behalf while it is away.
    pub fn present(&self, id: &str) -> Result<Principal, AuthError> {
        let known = self.known()?;
        let record = known
            .by_token
            .values()
            .find(|record| record.id.as_str() == id);
        let record = record.ok_or(AuthError::Unknown)?;
        let identity = record.admitted(now_ms())?;
        Ok(Principal::of(identity, &self.grants))
    }

    fn identify_at(&self, bearer: &str, now: u64) -> Result<Principal, AuthError> {
        let known = self.known()?;
        let record = Token::hash(bearer).and_then(|hash| known.find(&hash));
        let record = record.ok_or_else(|| nobody(bearer))?;
        let identity = record.admitted(now)?;
        self.touch(record, now);
        Ok(Principal::of(identity, &self.grants))
    }

    /// A number that changes whenever agents were added or revoked: who holds something open for an
    /// agent looks with [`Agents::is_active`] whether it may stay open.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Whether an agent that came in would still come in.
    pub fn is_active(&self, id: &AgentId) -> bool {
        let now = now_ms();
        self.known().is_ok_and(|known| {
            known.by_token.values().any(|record| {
                let in_time = record.expires_ms.is_none_or(|expires| expires > now);
                record.id == *id && record.identity.is_ok() && !record.revoked && in_time
            })
        })
    }

    fn touch(&self, record: &Record, now: u64) {
        let before = record.touched_ms.load(Ordering::Relaxed);
        let due = now >= before.saturating_add(TOUCH_EVERY_MS);
        let order = Ordering::Relaxed;
        if due
            && record
                .touched_ms
                .compare_exchange(before, now, order, order)
                .is_ok()
        {
            let id = record.id.as_str();
            self.vault.agents().touch(id, now);
        }
    }

    fn known(&self) -> Result<Arc<Known>, AuthError> {
        let state = *self.changes.borrow();
        let known = Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner));
        if known.state == state {
            return Ok(known);
        }
        let fresh = Known::read(&self.vault, &self.spaces, state).map(Arc::new);
        let fresh = fresh.map_err(|cause| {
            tracing::error!("the agents could not be read again: {cause}");
            AuthError::Unavailable
        })?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have read a later state meanwhile.
        if known.state < state {
            *known = Arc::clone(&fresh);
        }
        Ok(fresh)
    }
}

impl Record {
    /// Who it is, if they come in at a time.
    fn admitted(&self, now: u64) -> Result<&Arc<Identity>, AuthError> {
        if self.revoked {
            return Err(AuthError::Revoked);
        }
        if self.expires_ms.is_some_and(|expires| expires <= now) {
            return Err(AuthError::Expired);
        }
        self.identity.as_ref().map_err(|error| *error)
    }
}

impl Known {
    /// `state` is from before the reading: what changes meanwhile is read again.
    fn read(vault: &Vault, spaces: &Spaces, state: u64) -> Result<Self, VaultError> {
        let agents = vault.agents().list()?.into_iter();
        let by_token = agents.map(|agent| record(&agent, spaces)).collect();
        Ok(Self { state, by_token })
    }

    /// What is looked up is a hash that nobody can choose, so the time that the search takes tells
    /// nothing about the tokens.
    fn find(&self, hash: &TokenHash) -> Option<&Record> {
        self.by_token.get(hash.as_bytes())
    }
}

/// Why no agent has this token. Its checksum opens nothing, so only a stranger's is computed.
fn nobody(bearer: &str) -> AuthError {
    if Token::is_whole(bearer) {
        AuthError::Unknown
    } else {
        AuthError::Malformed
    }
}

fn record(agent: &Agent, spaces: &Spaces) -> ([u8; 32], Record) {
    let record = Record {
        id: AgentId::from(agent.id.as_str()),
        expires_ms: agent.expires_ms,
        revoked: agent.revoked_ms.is_some(),
        touched_ms: AtomicU64::new(agent.last_used_ms.unwrap_or(0)),
        identity: identity(agent, spaces).map(Arc::new),
    };
    (agent.token_sha256, record)
}

fn identity(agent: &Agent, spaces: &Spaces) -> Result<Identity, AuthError> {
    let overrides: Overrides =
        serde_json::from_str(&agent.overrides).map_err(|_| AuthError::Unreadable)?;
    let space = agent.space.clone().ok_or(AuthError::NoSpace)?;
    let reach = if space == WHOLE_BOX {
        Reach::everything()
    } else {
        Reach::of(spaces.get(&space).ok_or(AuthError::NoSpace)?)
    };
    Ok(Identity {
        id: AgentId::from(agent.id.as_str()),
        name: agent.name.clone(),
        reach: match &overrides.containers {
            Some(containers) => reach.narrowed(containers),
            None => reach,
        },
        policy: Policy {
            preset: agent.preset,
            overrides,
        },
        space,
    })
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::bootstrap;
    use super::*;
    use crate::config::{Preset, Space};
    use crate::sys::{Scratch, Secret};
    use crate::vault::NewAgent;

    struct House {
        scratch: Scratch,
        vault: Vault,
        agents: Agents,
    }

    fn house() -> House {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let media = Space {
            containers: vec!["jellyfin".parse().unwrap()],
            host: false,
        };
        let spaces = Spaces::from([("media".to_owned(), media)]);
        let agents = Agents::new(vault.clone(), spaces).unwrap();
        House {
            scratch,
            vault,
            agents,
        }
    }

    async fn added(vault: &Vault, expires_ms: Option<u64>) -> (Secret, Agent) {
        let (secret, hash) = Token::mint().unwrap();
        let agent = NewAgent {
            name: "claude".to_owned(),
            token_sha256: *hash.as_bytes(),
            preset: Preset::Operate,
            overrides: "{}".to_owned(),
            space: Some("media".to_owned()),
            expires_ms,
        };
        (secret, vault.agents().add(agent).await.unwrap())
    }

    #[tokio::test]
    async fn a_token_leads_to_its_agent_at_once() {
        let House { vault, agents, .. } = &house();
        let (secret, agent) = added(vault, None).await;
        let who = agents.identify(secret.expose()).unwrap();
        assert_eq!(who.agent_id().as_str(), agent.id);
        assert_eq!((who.name(), who.preset()), ("claude", Preset::Operate));
        assert_eq!(who.space(), "media");
        assert!(who.reach().container("jellyfin") && !who.reach().host());
        assert!(agents.is_active(who.agent_id()));
    }

    #[tokio::test]
    async fn a_token_that_is_none_or_nobodys() {
        let House { agents, .. } = &house();
        assert_eq!(agents.identify("gw_x").unwrap_err(), AuthError::Malformed);
        assert_eq!(agents.identify("").unwrap_err(), AuthError::Malformed);
        let (secret, _) = Token::mint().unwrap();
        assert_eq!(
            agents.identify(secret.expose()).unwrap_err(),
            AuthError::Unknown
        );
    }

    #[tokio::test]
    async fn a_token_ends_at_its_time() {
        let House { vault, agents, .. } = &house();
        let (secret, _) = added(vault, Some(1_000)).await;
        assert!(agents.identify_at(secret.expose(), 999).is_ok());
        let error = agents.identify_at(secret.expose(), 1_000).unwrap_err();
        assert_eq!(error, AuthError::Expired);
        assert_eq!(
            agents.identify(secret.expose()).unwrap_err(),
            AuthError::Expired
        );
    }

    #[tokio::test]
    async fn a_revoked_token_is_good_no_longer_than_the_answer_takes() {
        let House { vault, agents, .. } = &house();
        let (secret, agent) = added(vault, None).await;
        let who = agents.identify(secret.expose()).unwrap();
        vault.agents().revoke(&agent.id).await.unwrap();
        assert_eq!(
            agents.identify(secret.expose()).unwrap_err(),
            AuthError::Revoked
        );
        assert!(!agents.is_active(who.agent_id()));
    }

    #[tokio::test]
    async fn a_token_revoked_by_another_process_is_refused_soon() {
        let House {
            vault,
            agents,
            scratch,
        } = &house();
        let (secret, agent) = added(vault, None).await;
        agents.identify(secret.expose()).unwrap();
        let mut changes = agents.changes();
        changes.mark_unchanged();
        let other = Vault::open(&scratch.join("vault.db")).unwrap();
        other.agents().revoke(&agent.id).await.unwrap();
        let wait = tokio::time::timeout(std::time::Duration::from_mins(2), changes.changed());
        wait.await.unwrap().unwrap();
        assert_eq!(
            agents.identify(secret.expose()).unwrap_err(),
            AuthError::Revoked
        );
    }

    #[tokio::test]
    async fn a_use_is_noted_at_most_once_a_minute() {
        let House { vault, agents, .. } = &house();
        let (secret, _) = added(vault, None).await;
        for (now, noted) in [
            (1_000_000, 1_000_000),
            (1_059_999, 1_000_000),
            (1_060_000, 1_060_000),
        ] {
            agents.identify_at(secret.expose(), now).unwrap();
            vault.probe().await.unwrap();
            assert_eq!(vault.agents().list().unwrap()[0].last_used_ms, Some(noted));
        }
    }

    #[tokio::test]
    async fn the_first_agent_is_made_again_only_with_a_new_token() {
        let House { vault, agents, .. } = &house();
        let first = bootstrap(vault, "try", Preset::Admin).await.unwrap();
        let observer = bootstrap(vault, "try", Preset::Observe).await.unwrap();
        assert_eq!(
            agents.identify(first.expose()).unwrap().preset(),
            Preset::Admin
        );
        let second = bootstrap(vault, "try", Preset::Admin).await.unwrap();
        assert_eq!(
            agents.identify(first.expose()).unwrap_err(),
            AuthError::Revoked
        );
        assert!(agents.identify(second.expose()).is_ok());
        assert!(
            agents.identify(observer.expose()).is_ok(),
            "another preset is another agent"
        );
    }

    #[tokio::test]
    async fn an_agent_of_no_space_or_of_an_unreadable_policy_stays_out() {
        let House { vault, agents, .. } = &house();
        for (space, overrides, expected) in [
            (None, "{}", AuthError::NoSpace),
            (Some("attic"), "{}", AuthError::NoSpace),
            (Some("media"), "{\"unheard\":1}", AuthError::Unreadable),
        ] {
            let (secret, hash) = Token::mint().unwrap();
            let agent = NewAgent {
                name: "claude".to_owned(),
                token_sha256: *hash.as_bytes(),
                preset: Preset::Admin,
                overrides: overrides.to_owned(),
                space: space.map(str::to_owned),
                expires_ms: None,
            };
            let agent = vault.agents().add(agent).await.unwrap();
            assert_eq!(agents.identify(secret.expose()).unwrap_err(), expected);
            assert!(!agents.is_active(&AgentId::from(agent.id.as_str())));
        }
    }

    #[tokio::test]
    async fn looking_up_does_not_ask_the_disk() {
        let House {
            vault,
            agents,
            scratch,
        } = &house();
        let (secret, _) = added(vault, None).await;
        agents.identify(secret.expose()).unwrap();
        std::fs::write(scratch.join("vault.db"), "gone").unwrap();
        assert!(agents.identify(secret.expose()).is_ok());
    }
}
