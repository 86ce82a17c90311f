//! Every session: made by `initialize`, known again by its signed id, ended by DELETE.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::hmac;
use serde_json::{Map, Value};

use super::{claims::Claims, session::Session};
use crate::protocol::Version;
use crate::vault::Vault;

/// So many sessions are in memory at once; then the one that has rested longest leaves it. Its id
/// stays good, its subscriptions are forgotten.
const MAX_IN_MEMORY: usize = 4_096;

/// The sessions.
pub struct Sessions {
    key: hmac::Key,
    lifetime_s: u64,
    /// Remembers ended sessions across restarts; fixtures have none.
    vault: Option<Vault>,
    /// By the whole signed id: one that stands here has been verified.
    live: Mutex<HashMap<Box<str>, Entry>>,
}

enum Entry {
    Live(Arc<Session>),
    /// Ended, until its id would have expired; only where there is no vault.
    Ended,
}

impl Sessions {
    /// Sessions signed with this key.
    pub fn new(key: &[u8; 32], lifetime_s: u64, vault: Option<Vault>) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            lifetime_s,
            vault,
            live: Mutex::default(),
        }
    }

    /// Makes a session: its id and itself.
    pub fn create(
        &self,
        agent: &str,
        version: Version,
        declared: &Map<String, Value>,
    ) -> (String, Arc<Session>) {
        let claims = Claims::new(agent, version, declared, self.lifetime_s);
        let id = claims.sign(&self.key);
        let session = self.remember(&id, claims);
        (id, session)
    }

    /// Finds an agent's session; one that is unknown, ended or somebody else's is not found alike.
    pub fn find(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let known = match self.lock().get(id) {
            Some(Entry::Ended) => return None,
            Some(Entry::Live(session)) => Some(session.clone()),
            None => None,
        };
        let session = match known {
            Some(session) => session,
            None => self.read(id, agent)?,
        };
        if !self.admits(&session.claims, agent) {
            return None;
        }
        session.touch();
        Some(session)
    }

    /// A session that is not in memory, from what its id says.
    fn read(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let claims = Claims::verify(id, &self.key)?;
        self.admits(&claims, agent)
            .then(|| self.remember(id, claims))
    }

    /// Whether a session is this agent's, has not expired and was not ended.
    fn admits(&self, claims: &Claims, agent: &str) -> bool {
        let ended = |vault: &Vault| vault.sessions().is_revoked(&claims.session.to_string());
        claims.agent == agent && !claims.has_expired() && !self.vault.as_ref().is_some_and(ended)
    }

    /// Ends a session for good.
    pub async fn end(&self, session: &Session) {
        session.end();
        let Some(vault) = &self.vault else {
            self.lock().insert(session.id.clone(), Entry::Ended);
            return;
        };
        self.lock().remove(&session.id);
        let until_ms = session.claims.expires_s.saturating_mul(1_000);
        let named = session.claims.session.to_string();
        if let Err(cause) = vault.sessions().revoke(&named, until_ms).await {
            tracing::error!(%cause, "an ended session could not be written down");
        }
    }

    fn remember(&self, id: &str, claims: Claims) -> Arc<Session> {
        let mut live = self.lock();
        if live.len() >= MAX_IN_MEMORY {
            forget_the_most_rested(&mut live);
        }
        match live
            .entry(id.into())
            .or_insert_with(|| Entry::Live(Session::new(id, claims.clone())))
        {
            Entry::Live(session) => session.clone(),
            Entry::Ended => Session::new(id, claims),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_the_most_rested(live: &mut HashMap<Box<str>, Entry>) {
    let rested = live.iter().filter_map(|(id, entry)| match entry {
        Entry::Live(session) => session.idle_since().map(|since| (since, id)),
        Entry::Ended => Some((0, id)),
    });
    if let Some(id) = rested.min().map(|(_, id)| id.clone()) {
        live.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Scratch;

    fn created(sessions: &Sessions) -> (String, Arc<Session>) {
        sessions.create("a", Version::V2025_11_25, &Map::new())
    }

    #[test]
    fn a_session_in_memory_is_found_by_its_agent_and_its_whole_id_alone() {
        let sessions = Sessions::new(&[1; 32], 60, None);
        let (id, session) = created(&sessions);
        assert!(Arc::ptr_eq(&sessions.find(&id, "a").unwrap(), &session));
        assert!(sessions.find(&id, "b").is_none());
        let (body, _) = id.split_once('.').unwrap();
        for other in [body, &format!("{body}."), &format!("{id}A"), ""] {
            assert!(sessions.find(other, "a").is_none(), "{other}");
        }
        let after_a_restart = Sessions::new(&[1; 32], 60, None);
        let found = after_a_restart.find(&id, "a").unwrap();
        assert_eq!(found.claims, session.claims);
    }

    #[tokio::test]
    async fn being_in_memory_does_not_keep_a_session_that_is_over() {
        let expired = Sessions::new(&[1; 32], 0, None);
        let (id, _session) = created(&expired);
        assert!(expired.find(&id, "a").is_none());

        let sessions = Sessions::new(&[1; 32], 60, None);
        let (id, session) = created(&sessions);
        sessions.end(&session).await;
        assert!(sessions.find(&id, "a").is_none());

        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let sessions = Sessions::new(&[1; 32], 60, Some(vault.clone()));
        let (id, session) = created(&sessions);
        let named = session.claims.session.to_string();
        vault.sessions().revoke(&named, u64::MAX / 4).await.unwrap();
        assert!(sessions.find(&id, "a").is_none(), "it is still in memory");
    }
}
