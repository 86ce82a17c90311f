//! Every session: made by `initialize`, known again by its signed id, ended by DELETE.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::hmac;
use serde_json::{Map, Value};
use uuid::Uuid;

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
    live: Mutex<HashMap<Uuid, Entry>>,
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
        (id, self.remember(claims))
    }

    /// Finds an agent's session; one that is unknown, ended or somebody else's is not found alike.
    pub fn find(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let claims = Claims::verify(id, &self.key).filter(|claims| claims.agent == agent)?;
        if self
            .vault
            .as_ref()
            .is_some_and(|vault| vault.sessions().is_revoked(&claims.session.to_string()))
        {
            return None;
        }
        let known = match self.lock().get(&claims.session) {
            Some(Entry::Ended) => return None,
            Some(Entry::Live(session)) => Some(session.clone()),
            None => None,
        };
        let session = known.unwrap_or_else(|| self.remember(claims));
        session.touch();
        Some(session)
    }

    /// Ends a session for good.
    pub async fn end(&self, session: &Session) {
        session.end();
        let id = session.claims.session;
        let Some(vault) = &self.vault else {
            self.lock().insert(id, Entry::Ended);
            return;
        };
        self.lock().remove(&id);
        let until_ms = session.claims.expires_s.saturating_mul(1_000);
        if let Err(cause) = vault.sessions().revoke(&id.to_string(), until_ms).await {
            tracing::error!(%cause, "an ended session could not be written down");
        }
    }

    fn remember(&self, claims: Claims) -> Arc<Session> {
        let mut live = self.lock();
        if live.len() >= MAX_IN_MEMORY {
            forget_the_most_rested(&mut live);
        }
        let id = claims.session;
        match live
            .entry(id)
            .or_insert_with(|| Entry::Live(Session::new(claims.clone())))
        {
            Entry::Live(session) => session.clone(),
            Entry::Ended => Session::new(claims),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Entry>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_the_most_rested(live: &mut HashMap<Uuid, Entry>) {
    let rested = live.iter().filter_map(|(id, entry)| match entry {
        Entry::Live(session) => session.idle_since().map(|since| (since, *id)),
        Entry::Ended => Some((0, *id)),
    });
    if let Some((_, id)) = rested.min() {
        live.remove(&id);
    }
}
