//! Every session: made by `initialize`, known again by its signed id, ended by DELETE, by age, by its agent's end.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::hmac;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    claims::Claims,
    known::{Asleep, Full, Known},
    session::Session,
};
use crate::config::Limits;
use crate::protocol::{Level, Version};
use crate::vault::{SessionUse, StoredSession, Subscription, Vault, VaultError};

/// Uses are written down so often, all in one commit. A server that is killed has forgotten the uses since
/// then, so after a start every session has this much longer: none ends earlier than it was promised.
const NOTE_EVERY: Duration = Duration::from_mins(1);

/// The sessions. Nothing limits how long one lasts that is used: its agent is asked for its token at every
/// request, and most clients do not recover from a session's end.
pub struct Sessions {
    key: hmac::Key,
    note_every: Duration,
    /// Remembers sessions across restarts; fixtures have none.
    vault: Option<Vault>,
    known: Mutex<Known>,
}

impl Sessions {
    /// Sessions with ids signed with this key, and those that the vault remembers.
    pub fn open(key: &[u8; 32], limits: &Limits, vault: Option<Vault>) -> Result<Self, VaultError> {
        // A short bound is looked after more often, down to ten times a second.
        let shortest = limits.session_idle.min(limits.session_unused) / 4;
        let note_every = NOTE_EVERY.min(shortest.max(Duration::from_millis(100)));
        let mut known = Known::new(limits.clone());
        if let Some(vault) = &vault {
            load(vault, &mut known, note_every)?;
        }
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            note_every,
            vault,
            known: Mutex::new(known),
        })
    }

    /// Makes a session; its client may have its id when the answer comes.
    pub async fn create(
        &self,
        agent: &str,
        version: Version,
        declared: &Map<String, Value>,
    ) -> Result<Arc<Session>, Full> {
        let claims = Claims::new(agent, version, declared);
        let name = claims.session.to_string();
        let session = Session::new(&claims.sign(&self.key), claims);
        let displaced = self.lock().add(session.clone())?;
        self.forget(displaced);
        if let Some(vault) = &self.vault {
            written(vault.sessions().add(&name, agent).await);
        }
        Ok(session)
    }

    /// Finds an agent's session; one that is unknown, over or somebody else's is not found alike.
    pub fn find(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let awake = self.lock().awake(id, agent);
        awake.or_else(|| {
            let claims = Claims::verify(id, &self.key)?;
            self.lock().wake(id, claims, agent)
        })
    }

    /// Ends a session for good.
    pub async fn end(&self, session: &Session) {
        let name = session.claims.session;
        self.lock().remove(name);
        if let Some(vault) = &self.vault {
            written(vault.sessions().remove(&name.to_string()).await);
        }
    }

    /// Remembers that a session is subscribed to a resource, from a revision on.
    pub async fn subscribed(&self, session: &Session, uri: &str, since: u64) {
        if let Some(vault) = self.keeping(session) {
            let subscription = Subscription {
                session: session.claims.session.to_string(),
                uri: uri.to_owned(),
                since,
            };
            written(vault.subscriptions().add(subscription).await);
        }
    }

    /// Remembers that it no longer is.
    pub async fn unsubscribed(&self, session: &Session, uri: &str) {
        if let Some(vault) = self.keeping(session) {
            let name = session.claims.session.to_string();
            written(vault.subscriptions().remove(&name, uri).await);
        }
    }

    /// Remembers from which severity on a session's client wants log messages.
    pub async fn level_set(&self, session: &Session, level: Level) {
        if let Some(vault) = self.keeping(session) {
            let name = session.claims.session.to_string();
            written(vault.sessions().set_level(&name, level.as_str()).await);
        }
    }

    /// Ends what is over and notes what was used, for as long as it is polled.
    pub async fn keep(&self) {
        let mut agents = self.vault.as_ref().map(|vault| vault.agents().changes());
        self.forget_strangers();
        loop {
            tokio::select! {
                () = sleep(self.note_every) => self.note().await,
                () = changed(agents.as_mut()) => self.forget_strangers(),
            }
        }
    }

    /// Ends what has rested too long and writes down what was used.
    pub async fn note(&self) {
        let (over, uses) = {
            let mut known = self.lock();
            (known.remove_rested(), known.uses())
        };
        self.forget(over);
        if let Some(vault) = self.vault.as_ref().filter(|_| !uses.is_empty()) {
            let uses = uses.into_iter().map(|(name, idle, heard)| SessionUse {
                id: name.to_string(),
                idle,
                heard,
            });
            written(vault.sessions().note(uses.collect()).await);
        }
    }

    /// Forgets the sessions of agents that are no longer let in.
    fn forget_strangers(&self) {
        let Some(vault) = &self.vault else { return };
        let agents = match vault.agents().list() {
            Ok(agents) => agents.into_iter().filter(|a| a.revoked_ms.is_none()),
            Err(cause) => {
                tracing::error!(%cause, "sessions of revoked agents could not be looked for");
                return;
            }
        };
        let let_in: HashSet<String> = agents.map(|agent| agent.id).collect();
        let over = self.lock().forget_strangers(|id| let_in.contains(id));
        self.forget(over);
    }

    fn forget(&self, names: impl IntoIterator<Item = Uuid>) {
        let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
        if let Some(vault) = self.vault.as_ref().filter(|_| !names.is_empty()) {
            vault.sessions().leave_removal(names);
        }
    }

    /// Where something of this session is kept.
    fn keeping(&self, session: &Session) -> Option<&Vault> {
        self.vault.as_ref().filter(|_| session.is_kept())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the sessions of before the restart. `grace` is how long a use may not have been noted.
fn load(vault: &Vault, known: &mut Known, grace: Duration) -> Result<(), VaultError> {
    let mut subscriptions: HashMap<String, Vec<(String, u64)>> = HashMap::new();
    for Subscription {
        session,
        uri,
        since,
    } in vault.subscriptions().list()?
    {
        let theirs = subscriptions.entry(session).or_default();
        theirs.push((uri, since));
    }
    let now = Instant::now();
    for stored in vault.sessions().list()? {
        let mut subscriptions = subscriptions.remove(&stored.id).unwrap_or_default();
        let heard = stored.heard.unwrap_or(0);
        for (_, since) in &mut subscriptions {
            *since = heard.max(*since);
        }
        // One whose name cannot be read was not written by us, and nobody has its id.
        if let Ok(name) = Uuid::parse_str(&stored.id) {
            known.remember(name, asleep(stored, subscriptions, now, grace));
        }
    }
    Ok(())
}

fn asleep(
    stored: StoredSession,
    subscriptions: Vec<(String, u64)>,
    now: Instant,
    grace: Duration,
) -> Asleep {
    Asleep {
        agent: stored.agent,
        // A moment before the box was started cannot always be said.
        used: now
            .checked_sub(stored.idle.saturating_sub(grace))
            .unwrap_or(now),
        level: stored.level.as_deref().and_then(Level::parse),
        subscriptions,
    }
}

/// A vault that cannot write takes no session away: it goes on until the next restart.
fn written<E: Display>(outcome: Result<(), E>) {
    if let Err(cause) = outcome {
        tracing::error!(%cause, "a session will not be the same after a restart");
    }
}

async fn changed(agents: Option<&mut watch::Receiver<u64>>) {
    let changes = match agents {
        Some(agents) => agents.changed().await.is_ok(),
        None => false,
    };
    if !changes {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Scratch;
    use crate::vault::NewAgent;

    const MINUTE: Duration = Duration::from_mins(1);

    fn open(vault: Option<&Vault>) -> Sessions {
        Sessions::open(&[1; 32], &Limits::default(), vault.cloned()).unwrap()
    }

    async fn created(sessions: &Sessions, agent: &str) -> Arc<Session> {
        let nothing = Map::new();
        let made = sessions.create(agent, Version::V2025_11_25, &nothing);
        made.await.unwrap_or_else(|Full| panic!("it is full"))
    }

    #[tokio::test]
    async fn z3_a_session_is_found_by_its_agent_and_its_whole_id_alone() {
        let sessions = open(None);
        let session = created(&sessions, "a").await;
        let id = &*session.id;
        assert!(Arc::ptr_eq(&sessions.find(id, "a").unwrap(), &session));
        assert!(sessions.find(id, "b").is_none());
        let (body, _) = id.split_once('.').unwrap();
        for other in [body, &format!("{body}."), &format!("{id}A"), ""] {
            assert!(sessions.find(other, "a").is_none(), "{other}");
        }
        sessions.end(&session).await;
        assert!(sessions.find(id, "a").is_none());
        assert!(open(None).find(id, "a").is_none(), "it was never there");
    }

    #[tokio::test(start_paused = true)]
    async fn z4_a_session_rests_half_an_hour_and_any_use_begins_it_anew() {
        let sessions = open(None);
        let session = created(&sessions, "a").await;
        let found = || sessions.find(&session.id, "a").is_some();
        for _ in 0..5 {
            assert!(found());
            tokio::time::advance(29 * MINUTE).await;
            sessions.note().await;
        }
        let stream = session.open_stream();
        tokio::time::advance(90 * MINUTE).await;
        sessions.note().await;
        drop(stream);
        tokio::time::advance(29 * MINUTE).await;
        assert!(found());
        tokio::time::advance(30 * MINUTE).await;
        assert!(!found());
        sessions.note().await;
        assert!(*session.ended().borrow(), "and its memory is free");
    }

    #[tokio::test(start_paused = true)]
    async fn z4_a_session_that_was_never_used_ends_earlier() {
        let sessions = open(None);
        let (used, unused) = (created(&sessions, "a").await, created(&sessions, "a").await);
        assert!(sessions.find(&used.id, "a").is_some());
        tokio::time::advance(5 * MINUTE).await;
        assert!(sessions.find(&unused.id, "a").is_none());
        assert!(sessions.find(&used.id, "a").is_some());
    }

    #[tokio::test]
    async fn z12_what_a_client_asked_for_holds_after_a_restart() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let sessions = open(Some(&vault));
        let session = created(&sessions, "a").await;
        sessions.level_set(&session, Level::Error).await;
        sessions.subscribed(&session, "u", 3).await;
        sessions.subscribed(&session, "v", 9).await;
        sessions.unsubscribed(&session, "u").await;
        let after = open(Some(&vault));
        assert!(after.find(&session.id, "b").is_none());
        let woken = after.find(&session.id, "a").unwrap();
        assert_eq!(woken.claims, session.claims);
        assert_eq!(woken.level(), Some(Level::Error));
        assert_eq!(woken.interests.heard(), Some(9));
        assert!(Arc::ptr_eq(&after.find(&session.id, "a").unwrap(), &woken));
        after.end(&woken).await;
        assert!(open(Some(&vault)).find(&session.id, "a").is_none());
    }

    #[tokio::test]
    async fn z12_what_was_heard_is_noted_with_the_use() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let sessions = open(Some(&vault));
        let session = created(&sessions, "a").await;
        session.interests.add("u", 3).unwrap();
        sessions.subscribed(&session, "u", 3).await;
        session.interests.rewind(5);
        session.touch();
        sessions.note().await;
        let woken = open(Some(&vault)).find(&session.id, "a").unwrap();
        assert_eq!(woken.interests.heard(), Some(5));
    }

    #[tokio::test]
    async fn sessions_end_with_their_agent() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let mut agents = Vec::new();
        for hash in [1, 2] {
            let new = NewAgent {
                name: "an agent".to_owned(),
                token_sha256: [hash; 32],
                preset: crate::config::Preset::Observe,
                overrides: "{}".to_owned(),
                space: None,
                expires_ms: None,
            };
            agents.push(vault.agents().add(new).await.unwrap().id);
        }
        let sessions = open(Some(&vault));
        let (first, second) = (
            created(&sessions, &agents[0]).await,
            created(&sessions, &agents[1]).await,
        );
        let call = first.begin(&crate::protocol::Id::Number(1)).unwrap();
        let forgotten = async {
            tokio::task::yield_now().await;
            vault.agents().revoke(&agents[0]).await.unwrap();
            while sessions.find(&first.id, &agents[0]).is_some() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = sessions.keep() => {}
            () = forgotten => {}
        }
        assert!(!*first.ended().borrow(), "its call is the guard's to end");
        drop(call);
        assert!(sessions.find(&second.id, &agents[1]).is_some());
        vault.probe().await.unwrap();
        assert_eq!(vault.sessions().list().unwrap().len(), 1);
    }
}
