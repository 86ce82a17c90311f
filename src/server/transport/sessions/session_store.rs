//! Where sessions are stored, and how they are read again after a restart or by another front.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::session_table::{DormantSession, DormantSubscription, SessionMap};
use gatewren_store::vault::{SeenRevision, StoredSession, Subscription, Vault, VaultError};
use gatewren_wire::protocol::LogSeverity;

/// Where sessions are stored across restarts, and the history that the revisions of their subscriptions belong to.
#[derive(Clone)]
pub struct SessionStore {
    /// The vault that stores the sessions.
    pub vault: Vault,
    /// The id of the database of the resources.
    pub database: String,
    /// Its newest revision.
    pub revision: watch::Receiver<u64>,
}

impl SessionStore {
    /// The newest revision.
    pub fn state(&self) -> SeenRevision {
        SeenRevision {
            database: self.database.clone(),
            revision: *self.revision.borrow(),
        }
    }

    /// Reads one session. `grace` is how long a use may not have been stored.
    pub fn find(&self, name: &str, grace: Duration) -> Result<Option<DormantSession>, VaultError> {
        let Some(stored) = self.vault.sessions().find(name)? else {
            return Ok(None);
        };
        let theirs = self.vault.subscriptions().of(name)?;
        let theirs = dormant_subscriptions(theirs, stored.heard, Some(self.state().revision));
        Ok(Some(dormant_session(stored, theirs, Instant::now(), grace)))
    }
}

/// Loads the sessions from before the restart. `grace` is how long a use may not have been stored.
pub fn load(
    store: &SessionStore,
    known: &mut SessionMap,
    grace: Duration,
) -> Result<(), VaultError> {
    let (vault, state) = (&store.vault, store.state());
    let before = vault.sessions().state_seen()?;
    let is_continued = before
        .is_some_and(|seen| seen.database == state.database && seen.revision <= state.revision);
    if !is_continued {
        vault.sessions().enqueue_new_history(state.clone());
    }
    let mut subscriptions: HashMap<String, Vec<Subscription>> = HashMap::new();
    for subscription in vault.subscriptions().list()? {
        let theirs = subscriptions.entry(subscription.session.clone());
        theirs.or_default().push(subscription);
    }
    let now = Instant::now();
    for stored in vault.sessions().list()? {
        let theirs = subscriptions.remove(&stored.id).unwrap_or_default();
        // An entry without a valid name was not written by this server, and no client has its id.
        if let Ok(name) = Uuid::parse_str(&stored.id) {
            let newest = is_continued.then_some(state.revision);
            let theirs = dormant_subscriptions(theirs, stored.heard, newest);
            known.remember(name, dormant_session(stored, theirs, now, grace));
        }
    }
    Ok(())
}

/// The subscriptions of a stored session. `newest` is the newest revision; `None` if what was reported to the client is
/// of another history.
fn dormant_subscriptions(
    stored: Vec<Subscription>,
    heard: Option<u64>,
    newest: Option<u64>,
) -> Vec<DormantSubscription> {
    let subscriptions = stored.into_iter().map(|Subscription { uri, since, .. }| {
        let reported = heard.unwrap_or(0).max(since);
        let seen = newest
            .is_some_and(|newest| reported <= newest)
            .then_some(reported);
        let since = if seen.is_some() { since } else { 0 };
        DormantSubscription { uri, since, seen }
    });
    subscriptions.collect()
}

fn dormant_session(
    stored: StoredSession,
    subscriptions: Vec<DormantSubscription>,
    now: Instant,
    grace: Duration,
) -> DormantSession {
    DormantSession {
        agent: stored.agent,
        // A time before the boot of the host cannot always be represented.
        used: now
            .checked_sub(stored.idle.saturating_sub(grace))
            .unwrap_or(now),
        level: stored.level.as_deref().and_then(LogSeverity::parse),
        subscriptions,
    }
}
