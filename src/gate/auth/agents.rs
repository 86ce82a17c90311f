//! Authenticates agents by their tokens, from memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::watch;

use super::access_end::AccessEnd;
use super::agent_status::identity;
use super::error::AuthError;
use super::grants::GrantBook;
use super::links::LinkKey;
use super::logins::LoginKey;
use super::principal::{AgentId, AgentIdentity, AuthMethod, Principal};
use super::token::Token;
use gatewren_base::config::{LiveSettings, Settings, Spaces};
use gatewren_base::sys::{now_ms, read_lock, write_lock};
use gatewren_store::vault::{Agent, Vault, VaultError};

/// The accuracy of an agent's last use.
const TOUCH_EVERY_MS: u64 = 60_000;

/// The maximum interval of checks while waiting for an agent to expire: a change of the system clock causes no
/// event.
const LOOK: Duration = Duration::from_secs(30);

/// All agents in memory. They are read again when the vault reports a change, and when the settings are replaced,
/// because the settings define the spaces.
pub struct Agents {
    vault: Vault,
    live: LiveSettings,
    changes: watch::Receiver<u64>,
    known: RwLock<Arc<LoadedAgents>>,
    grants: Arc<GrantBook>,
}

/// The agents at one state of the vault, with the settings at that time.
struct LoadedAgents {
    state: u64,
    settings: Arc<Settings>,
    by_token: HashMap<[u8; 32], Record>,
}

struct Record {
    identity: Result<Arc<AgentIdentity>, AuthError>,
    id: AgentId,
    expires_ms: Option<u64>,
    revoked_ms: Option<u64>,
    last_use_ms: AtomicU64,
}

impl Agents {
    /// Reads all agents.
    pub fn new(vault: Vault, live: LiveSettings) -> Result<Self, VaultError> {
        let changes = vault.agents().changes();
        let known = LoadedAgents::read(&vault, live.now(), *changes.borrow())?;
        Ok(Self {
            grants: Arc::new(GrantBook::new(vault.clone())?),
            vault,
            live,
            changes,
            known: RwLock::new(Arc::new(known)),
        })
    }

    /// Returns the agent that a `Bearer` token belongs to. `from` is the address of a network connection.
    ///
    /// Fast path without a figure of its own: it asks memory and not the vault.
    pub fn identify(&self, bearer: &str, from: Option<IpAddr>) -> Result<Principal, AuthError> {
        self.identify_at(bearer, from, now_ms())
    }

    /// Returns an agent by id with its current permissions, for work on its behalf while it is not connected.
    pub fn present(&self, id: &str) -> Result<Principal, AuthError> {
        let known = self.load_agents()?;
        let mut records = known.by_token.values();
        let record = records.find(|record| record.id.as_str() == id);
        self.admit(record.ok_or(AuthError::Unknown)?, None, now_ms())
    }

    fn identify_at(
        &self,
        bearer: &str,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<Principal, AuthError> {
        let known = self.load_agents()?;
        let record = Token::hash(bearer).and_then(|hash| known.find(hash.as_bytes()));
        let record = record.ok_or_else(|| unknown_token_error(bearer))?;
        let who = self.admit(record, from, now)?;
        self.touch(record, now);
        Ok(who)
    }

    /// Returns the agent that exchanged its token, given as SHA-256, for a cookie.
    pub fn identify_login(
        &self,
        key: LoginKey,
        token: &[u8; 32],
        from: IpAddr,
    ) -> Result<Principal, AuthError> {
        self.identify_hash(token, from)
            .map(|who| who.signed_in(key))
    }

    /// Returns the agent of an OAuth program. The hash is the SHA-256 of the agent's own token.
    pub fn identify_link(
        &self,
        key: LinkKey,
        token: &[u8; 32],
        from: IpAddr,
    ) -> Result<Principal, AuthError> {
        self.identify_hash(token, from).map(|who| who.linked(key))
    }

    /// Returns the agent of a token, given as SHA-256.
    pub(crate) fn identify_hash(
        &self,
        token: &[u8; 32],
        from: IpAddr,
    ) -> Result<Principal, AuthError> {
        let (known, now) = (self.load_agents()?, now_ms());
        let record = known.find(token).ok_or(AuthError::Unknown)?;
        let who = self.admit(record, Some(from), now)?;
        self.touch(record, now);
        Ok(who)
    }

    /// Authenticates an agent again, with the same token and address.
    ///
    /// # Errors
    /// Why it is rejected now.
    pub fn current(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        let end = |why| AccessEnd::of(who, why, None);
        let known = self.load_agents().map_err(end)?;
        let record = known.find(&who.identity.token);
        let record = record.ok_or_else(|| end(AuthError::Unknown))?;
        let admitted = self.admit(record, who.from, now_ms());
        let now = admitted.map_err(|why| AccessEnd::of(who, why, record.ended_ms(why)))?;
        let way = who.way;
        Ok(Principal { way, ..now })
    }

    /// Waits until an agent's policy, access or name changes, and returns the agent with the change.
    ///
    /// # Errors
    /// Why it is rejected then.
    pub async fn wait_for_change(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        let (mut changes, mut live) = (self.changes.clone(), self.live.clone());
        loop {
            changes.mark_unchanged();
            live.mark_unchanged();
            let now = self.current(who)?;
            if now.identity != who.identity {
                return Ok(now);
            }
            tokio::select! {
                // The sender cannot be gone, because we hold the vault.
                _ = changes.changed() => {}
                () = live.changed() => {}
                () = look_again(now.expires_ms) => {}
            }
        }
    }

    /// Waits until an authenticated agent is rejected, and returns why.
    pub async fn wait_for_rejection(&self, who: &Principal) -> AccessEnd {
        let mut who = who.clone();
        loop {
            match self.wait_for_change(&who).await {
                Ok(now) => who = now,
                Err(end) => return end,
            }
        }
    }

    fn admit(
        &self,
        record: &Record,
        from: Option<IpAddr>,
        now: u64,
    ) -> Result<Principal, AuthError> {
        let identity = record.admitted(from, now)?;
        Ok(Principal {
            identity: Arc::clone(identity),
            from,
            expires_ms: record.expires_ms,
            grants: Some(Arc::clone(&self.grants)),
            way: AuthMethod::Token,
        })
    }

    fn touch(&self, record: &Record, now: u64) {
        let before = record.last_use_ms.load(Ordering::Relaxed);
        let due = now >= before.saturating_add(TOUCH_EVERY_MS);
        let order = Ordering::Relaxed;
        if due
            && record
                .last_use_ms
                .compare_exchange(before, now, order, order)
                .is_ok()
        {
            let id = record.id.as_str();
            self.vault.agents().touch(id, now);
        }
    }

    fn load_agents(&self) -> Result<Arc<LoadedAgents>, AuthError> {
        let state = *self.changes.borrow();
        let known = Arc::clone(&read_lock(&self.known));
        if known.state == state && self.live.is(&known.settings) {
            return Ok(known);
        }
        let fresh = LoadedAgents::read(&self.vault, self.live.now(), state).map(Arc::new);
        let fresh = fresh.map_err(|cause| {
            tracing::error!("reloading the agents failed: {cause}");
            AuthError::Unavailable
        })?;
        let mut known = write_lock(&self.known);
        // Another thread may have read a later state in the meantime.
        if known.state <= state {
            *known = Arc::clone(&fresh);
        }
        Ok(fresh)
    }
}

impl Record {
    /// Returns the identity, if the agent is accepted at this time from this address.
    fn admitted(&self, from: Option<IpAddr>, now: u64) -> Result<&Arc<AgentIdentity>, AuthError> {
        if self.revoked_ms.is_some() {
            return Err(AuthError::Revoked);
        }
        if self.expires_ms.is_some_and(|expires| expires <= now) {
            return Err(AuthError::Expired);
        }
        let identity = self.identity.as_ref().map_err(|error| *error)?;
        let networks = identity.policy.overrides.networks.as_deref();
        if let (Some(networks), Some(from)) = (networks, from)
            && !networks.iter().any(|network| network.contains(from))
        {
            return Err(AuthError::Elsewhere);
        }
        Ok(identity)
    }

    /// Returns when the token became invalid, if it did.
    fn ended_ms(&self, why: AuthError) -> Option<u64> {
        match why {
            AuthError::Revoked => self.revoked_ms,
            AuthError::Expired => self.expires_ms,
            _ => None,
        }
    }
}

impl LoadedAgents {
    /// `state` is the counter before reading. A change during the reading causes another one.
    fn read(vault: &Vault, settings: Arc<Settings>, state: u64) -> Result<Self, VaultError> {
        let agents = vault.agents().list()?.into_iter();
        let known = agents.map(|agent| record(&agent, &settings.spaces));
        Ok(Self {
            state,
            by_token: known.collect(),
            settings,
        })
    }

    /// The lookup key is a hash, which callers cannot choose, so the time of the lookup reveals nothing about the
    /// tokens.
    fn find(&self, hash: &[u8; 32]) -> Option<&Record> {
        self.by_token.get(hash)
    }
}

/// Waits until an agent may have expired: expiry itself causes no event.
async fn look_again(expires_ms: Option<u64>) {
    match expires_ms {
        Some(expires) => {
            let left = expires.saturating_sub(now_ms()).saturating_add(1);
            tokio::time::sleep(LOOK.min(Duration::from_millis(left))).await;
        }
        None => std::future::pending().await,
    }
}

/// Returns why no agent has this token. The checksum grants nothing, so it is only computed for an unknown token.
fn unknown_token_error(bearer: &str) -> AuthError {
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
        revoked_ms: agent.revoked_ms,
        last_use_ms: AtomicU64::new(agent.last_used_ms.unwrap_or(0)),
        identity: identity(agent, spaces).map(Arc::new),
    };
    (agent.token_sha256, record)
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::{bootstrap, rotate_token};
    use super::*;
    use gatewren_base::config::{LiveSettingsSender, Preset, Space};
    use gatewren_base::sys::{Scratch, Secret};
    use gatewren_store::vault::NewAgent;

    struct AgentsFixture {
        scratch: Scratch,
        vault: Vault,
        agents: Agents,
        in_force: LiveSettingsSender,
    }

    fn fixture() -> AgentsFixture {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let media = Space {
            containers: vec!["jellyfin".parse().unwrap()],
            host: false,
        };
        let in_force = LiveSettingsSender::new(Settings {
            spaces: Spaces::from([("media".to_owned(), media)]),
            ..Settings::default()
        });
        let agents = Agents::new(vault.clone(), in_force.live()).unwrap();
        AgentsFixture {
            scratch,
            vault,
            agents,
            in_force,
        }
    }

    async fn add_agent(vault: &Vault, expires_ms: Option<u64>) -> (Secret, Agent) {
        let (secret, hash) = Token::mint().unwrap();
        let agent = NewAgent {
            name: vault.agents().free_name("claude").unwrap(),
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
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, agent) = add_agent(vault, None).await;
        let who = agents.identify(secret.expose(), None).unwrap();
        assert_eq!(who.agent_id().as_str(), agent.id);
        assert_eq!((&**who.name(), who.preset()), ("claude", Preset::Operate));
        assert_eq!(&**who.space(), "media");
        assert!(who.reach().container("jellyfin") && !who.reach().host());
        assert!(agents.current(&who).is_ok());
    }

    #[tokio::test]
    async fn a_token_that_is_none_or_nobodys() {
        let AgentsFixture { agents, .. } = &fixture();
        assert_eq!(
            agents.identify("gw_x", None).unwrap_err(),
            AuthError::Malformed
        );
        assert_eq!(agents.identify("", None).unwrap_err(), AuthError::Malformed);
        let (secret, _) = Token::mint().unwrap();
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Unknown
        );
    }

    #[tokio::test]
    async fn a_token_ends_at_its_time() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, _) = add_agent(vault, Some(1_000)).await;
        assert!(agents.identify_at(secret.expose(), None, 999).is_ok());
        let error = agents
            .identify_at(secret.expose(), None, 1_000)
            .unwrap_err();
        assert_eq!(error, AuthError::Expired);
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Expired
        );
    }

    #[tokio::test]
    async fn a_revoked_token_is_good_no_longer_than_the_answer_takes() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, agent) = add_agent(vault, None).await;
        let who = agents.identify(secret.expose(), None).unwrap();
        vault.agents().revoke(&agent.id).await.unwrap();
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Revoked
        );
        let end = agents.current(&who).unwrap_err();
        let words = end.to_string();
        let token = who.token_id().unwrap();
        let named = format!("revoked token {token} of agent claude at 2");
        assert!(words.contains(&named), "{words}");
    }

    #[tokio::test]
    async fn a_token_revoked_by_another_process_is_refused_soon() {
        let AgentsFixture {
            vault,
            agents,
            scratch,
            ..
        } = &fixture();
        let (secret, agent) = add_agent(vault, None).await;
        agents.identify(secret.expose(), None).unwrap();
        let mut changes = vault.agents().changes();
        changes.mark_unchanged();
        let other = Vault::open(&scratch.join("vault.db")).unwrap();
        other.agents().revoke(&agent.id).await.unwrap();
        let wait = tokio::time::timeout(Duration::from_mins(2), changes.changed());
        wait.await.unwrap().unwrap();
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Revoked
        );
    }

    #[tokio::test]
    async fn a_use_is_noted_at_most_once_a_minute() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, _) = add_agent(vault, None).await;
        for (now, noted) in [
            (1_000_000, 1_000_000),
            (1_059_999, 1_000_000),
            (1_060_000, 1_060_000),
        ] {
            agents.identify_at(secret.expose(), None, now).unwrap();
            vault.probe().await.unwrap();
            assert_eq!(vault.agents().list().unwrap()[0].last_used_ms, Some(noted));
        }
    }

    #[tokio::test]
    async fn the_first_agent_is_made_again_only_with_a_new_token() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let made = async |preset| bootstrap(vault, "try", preset).await.unwrap();
        let (name, first) = made(Preset::Admin).await;
        let (_, observer) = made(Preset::Observe).await;
        assert_eq!(
            agents.identify(first.expose(), None).unwrap().preset(),
            Preset::Admin
        );
        let (again, second) = made(Preset::Admin).await;
        assert_eq!(again, name, "it is the same agent");
        assert_eq!(
            agents.identify(first.expose(), None).unwrap_err(),
            AuthError::Unknown
        );
        assert!(agents.identify(second.expose(), None).is_ok());
        assert!(
            agents.identify(observer.expose(), None).is_ok(),
            "another preset is another agent"
        );
        let names = || {
            let all = vault.agents().list().unwrap().into_iter();
            all.map(|agent| agent.name).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["try", "try-observe"]);
        // An agent that the owner changed is not taken for the trial's own.
        let agent = vault.agents().list().unwrap().remove(0);
        let changed = Agent {
            preset: Preset::Suggest,
            ..agent.clone()
        };
        assert!(vault.agents().replace(&agent, &changed).await.unwrap());
        made(Preset::Admin).await;
        assert_eq!(names(), ["try", "try-observe", "try-admin"]);
    }

    #[tokio::test]
    async fn an_agent_of_no_space_or_of_an_unreadable_policy_stays_out() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        for (space, overrides, expected) in [
            (None, "{}", AuthError::NoSpace),
            (Some("attic"), "{}", AuthError::NoSpace),
            (Some("media"), "{\"unheard\":1}", AuthError::Unreadable),
        ] {
            let (secret, hash) = Token::mint().unwrap();
            let agent = NewAgent {
                name: vault.agents().free_name("claude").unwrap(),
                token_sha256: *hash.as_bytes(),
                preset: Preset::Admin,
                overrides: overrides.to_owned(),
                space: space.map(str::to_owned),
                expires_ms: None,
            };
            vault.agents().add(agent).await.unwrap();
            assert_eq!(
                agents.identify(secret.expose(), None).unwrap_err(),
                expected
            );
        }
    }

    #[tokio::test]
    async fn an_agent_comes_from_where_it_may() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, agent) = add_agent(vault, None).await;
        let from = |address: &str| Some(address.parse().unwrap());
        let who = agents.identify(secret.expose(), from("192.0.2.1")).unwrap();
        let after = Agent {
            overrides: r#"{"networks":["10.0.0.0/8","fd00::/8"]}"#.to_owned(),
            ..agent.clone()
        };
        assert!(vault.agents().replace(&agent, &after).await.unwrap());
        for (address, has_valid_token) in [
            (from("10.1.2.3"), true),
            (from("::ffff:10.1.2.3"), true),
            (from("fd00::1"), true),
            (None, true),
            (from("192.0.2.1"), false),
            (from("::1"), false),
        ] {
            let known = agents.identify(secret.expose(), address);
            assert_eq!(known.is_ok(), has_valid_token, "{address:?}");
            assert!(has_valid_token || known.unwrap_err() == AuthError::Elsewhere);
        }
        agents.wait_for_rejection(&who).await;
    }

    #[tokio::test]
    async fn who_waits_hears_of_a_change_and_of_the_end() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, agent) = add_agent(vault, None).await;
        let who = agents.identify(secret.expose(), None).unwrap();
        let after = Agent {
            preset: Preset::Observe,
            space: Some("*".to_owned()),
            ..agent.clone()
        };
        let rows = vault.agents();
        let (changed, replaced) =
            tokio::join!(agents.wait_for_change(&who), rows.replace(&agent, &after));
        assert!(replaced.unwrap());
        let changed = changed.unwrap();
        assert_eq!(changed.preset(), Preset::Observe);
        assert!(changed.reach().is_everything() && !who.reach().is_everything());
        // A change of another agent does not count.
        add_agent(vault, None).await;
        assert_eq!(agents.current(&changed).unwrap().identity, changed.identity);
        let (ended, token) = tokio::join!(
            agents.wait_for_change(&changed),
            rotate_token(vault, &after)
        );
        let words = ended.unwrap_err().to_string();
        assert!(words.contains("replaced token"), "{words}");
        let token = token.unwrap().unwrap();
        assert!(agents.identify(token.expose(), None).is_ok());
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Unknown
        );
        assert!(rotate_token(vault, &after).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_space_that_is_defined_otherwise_counts_at_once_and_who_waits_hears_of_it() {
        let AgentsFixture {
            vault,
            agents,
            in_force,
            ..
        } = &fixture();
        let (secret, _) = add_agent(vault, None).await;
        let who = agents.identify(secret.expose(), None).unwrap();
        assert!(who.reach().container("jellyfin") && !who.reach().container("arr-sonarr"));
        let mut read = Settings::clone(&in_force.now());
        let media = read.spaces.get_mut("media").unwrap();
        media.containers.push("arr-*".parse().unwrap());
        let (wider, ()) = tokio::join!(agents.wait_for_change(&who), async {
            in_force.replace(read);
        });
        assert!(wider.as_ref().unwrap().reach().container("arr-sonarr"));
        let now = agents.identify(secret.expose(), None).unwrap();
        assert!(now.reach().container("arr-sonarr"));
        // New settings with the same definition of the space are not a change for its agents.
        in_force.replace(Settings::clone(&in_force.now()));
        assert_eq!(agents.current(&now).unwrap().identity, now.identity);
        let gone = async { in_force.replace(Settings::default()) };
        let (ended, ()) = tokio::join!(agents.wait_for_change(&now), gone);
        let words = ended.unwrap_err().to_string();
        assert!(words.contains("has no space"), "{words}");
        let refused = agents.identify(secret.expose(), None).unwrap_err();
        assert_eq!(refused, AuthError::NoSpace);
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_end_of_its_time() {
        let AgentsFixture { vault, agents, .. } = &fixture();
        let (secret, _) = add_agent(vault, Some(now_ms() + 300)).await;
        // On a slow machine it may have expired already.
        if let Ok(who) = agents.identify(secret.expose(), None) {
            agents.wait_for_rejection(&who).await;
        }
        assert_eq!(
            agents.identify(secret.expose(), None).unwrap_err(),
            AuthError::Expired
        );
    }

    #[tokio::test]
    async fn looking_up_does_not_ask_the_disk() {
        let AgentsFixture {
            vault,
            agents,
            scratch,
            ..
        } = &fixture();
        let (secret, _) = add_agent(vault, None).await;
        agents.identify(secret.expose(), None).unwrap();
        std::fs::write(scratch.join("vault.db"), "gone").unwrap();
        assert!(agents.identify(secret.expose(), None).is_ok());
    }
}
