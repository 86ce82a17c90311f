//! All sessions: created by `initialize`, found by their signed id, ended by DELETE, by age, or with their agent's
//! access.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ring::hmac;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::passed_message::PassedMessage;
use super::session::Session;
use super::session_store::{SessionStore, load};
use super::session_table::{SessionLimitReached, SessionMap};
use super::session_token::SessionClaims;
use super::shared_store::StoredView;
use gatewren_base::config::LiveSettings;
use gatewren_base::sys::lock;
use gatewren_store::vault::{OWNER, SessionUse, Subscription, Vault, VaultError};
use gatewren_wire::protocol::{LogSeverity, Version};

/// The interval at which uses are stored, all in one commit. A server that is killed loses the uses since then, so
/// after a start every session lives this much longer: none ends too early.
const NOTE_EVERY: Duration = Duration::from_mins(1);

/// The sessions. The lifetime of a session is not limited while it is used: its agent is authenticated with every
/// request. Most clients do not recover from the end of a session.
pub struct Sessions {
    key: hmac::Key,
    /// The name with which ids begin; empty for none.
    instance: String,
    live: LiveSettings,
    /// `None` for the fixtures.
    store: Option<SessionStore>,
    /// The newest revision that was stored.
    noted: AtomicU64,
    known: Mutex<SessionMap>,
    /// What the store had when it was last compared with the table.
    view: Mutex<StoredView>,
}

impl Sessions {
    /// Opens the table: ids are signed with this key, and the sessions in the store are loaded.
    pub fn open(
        key: &[u8; 32],
        live: LiveSettings,
        store: Option<SessionStore>,
    ) -> Result<Self, VaultError> {
        let mut known = SessionMap::new(live.clone(), store.is_some());
        let mut view = StoredView::default();
        if let Some(store) = &store {
            view = StoredView::read(&store.vault)?;
            load(store, &mut known, note_every(&live))?;
        }
        let newest = store.as_ref().map_or(0, |store| store.state().revision);
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            instance: String::new(),
            live,
            store,
            noted: AtomicU64::new(newest),
            known: Mutex::new(known),
            view: Mutex::new(view),
        })
    }

    /// Lets the ids of new sessions begin with the name of this instance.
    #[must_use]
    pub fn with_instance(mut self, name: &str) -> Self {
        name.clone_into(&mut self.instance);
        self
    }

    /// Creates a session; it is stored before this returns, so the client may get its id.
    pub async fn create(
        &self,
        agent: &str,
        version: Version,
        declared: &Map<String, Value>,
    ) -> Result<Arc<Session>, SessionLimitReached> {
        let claims = SessionClaims::new(agent, version, declared);
        let name = claims.session.to_string();
        let session = Session::new(&claims.sign(&self.instance, &self.key), claims);
        let evicted = lock(&self.known).add(session.clone())?;
        self.forget(evicted);
        if let Some(vault) = self.vault() {
            let added = vault.sessions().add(&name, agent).await;
            if added.is_ok() {
                session.mark_stored();
            }
            log_write_error(added);
        }
        Ok(session)
    }

    /// Finds an agent's session; `None` for an unknown one, an expired one and another agent's.
    pub fn find(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let awake = lock(&self.known).awake(id, agent);
        awake.or_else(|| {
            let claims = SessionClaims::verify(id, &self.key)?;
            self.look_up(claims.session);
            lock(&self.known).wake(id, claims, agent)
        })
    }

    /// Adds a session that another front has opened or used, if the store has it.
    fn look_up(&self, name: Uuid) {
        let Some(store) = self.store.as_ref().filter(|_| !self.has(name)) else {
            return;
        };
        let mut view = lock(&self.view);
        match store.find(&name.to_string(), note_every(&self.live)) {
            Ok(Some(asleep)) => {
                view.add(name, &asleep);
                lock(&self.known).find_elsewhere(name, asleep);
            }
            Ok(None) => {}
            Err(cause) => tracing::error!(%cause, "cannot look up a session in the vault"),
        }
    }

    /// Passes a client's message to the other fronts, because this one has not the call that it is about. A front
    /// without a name is the only one.
    pub fn pass_on(&self, session: &Session, message: &PassedMessage) {
        let vault = self.vault_of(session).filter(|_| !self.instance.is_empty());
        if let (Some(vault), Ok(message)) = (vault, serde_json::to_string(message)) {
            let name = session.claims.session.to_string();
            vault.session_messages().enqueue(name, message);
        }
    }

    /// Delivers what clients have sent to other fronts for the calls here.
    fn take_messages(&self) {
        let Some(vault) = self.vault().filter(|_| !self.instance.is_empty()) else {
            return;
        };
        let messages = match vault.session_messages().list() {
            Ok(messages) => messages,
            Err(cause) => {
                tracing::error!(%cause, "cannot read the messages of other fronts");
                return;
            }
        };
        for passed in messages {
            let name = Uuid::parse_str(&passed.session).ok();
            let session = name.and_then(|name| lock(&self.known).get(name));
            let message = serde_json::from_str::<PassedMessage>(&passed.message);
            if let (Some(session), Ok(message)) = (session, message)
                && message.deliver(&session)
            {
                vault.session_messages().enqueue_removal(passed.seq);
            }
        }
    }

    /// Whether a session in the store was changed since they were compared. Another front writes for each of its calls,
    /// and a comparison reads all sessions.
    fn store_has_changes(&self) -> bool {
        let view = lock(&self.view);
        // If this cannot be read, the comparison reports the error.
        self.vault()
            .is_some_and(|vault| view.is_outdated(vault).unwrap_or(true))
    }

    /// Applies what other fronts have changed in the store.
    fn compare_with_store(&self) {
        let Some(vault) = self.vault() else { return };
        // Held while the store is read: what this front stores in the meantime is recorded afterwards.
        let mut view = lock(&self.view);
        // Before the store is read: a session that is stored in the meantime has not ended.
        let stored = lock(&self.known).stored();
        match StoredView::read(vault) {
            Ok(now) => {
                let grace = note_every(&self.live);
                now.apply(&view, &mut lock(&self.known), &stored, grace);
                *view = now;
            }
            Err(cause) => {
                tracing::error!(%cause, "cannot compare the sessions with those in the vault");
            }
        }
    }

    /// Ends a session permanently.
    pub async fn end(&self, session: &Session) {
        self.end_named(&session.claims.agent, session.claims.session)
            .await;
    }

    /// Ends an agent's session of this name permanently; returns false if it has none.
    pub async fn end_named(&self, agent: &str, name: Uuid) -> bool {
        if !lock(&self.known).remove_of(agent, name) {
            return false;
        }
        if let Some(vault) = self.vault() {
            log_write_error(vault.sessions().remove(&name.to_string()).await);
        }
        true
    }

    /// The number of sessions of an agent, or of all agents, that have not expired.
    pub fn count(&self, agent: Option<&str>) -> usize {
        lock(&self.known).count(agent)
    }

    /// Whether a session of this name has not expired.
    pub fn has(&self, name: Uuid) -> bool {
        lock(&self.known).has(name)
    }

    /// An agent's sessions that have not expired: name, idle time, and revision, as far as it is known.
    pub fn shown_to(&self, agent: &str) -> Vec<(Uuid, Option<Duration>, Option<String>)> {
        lock(&self.known).of(agent)
    }

    /// Stores that a session is subscribed to a resource, from a revision on.
    pub async fn note_subscribed(&self, session: &Session, uri: &str, since: u64) {
        if let Some(vault) = self.vault_of(session) {
            let subscription = Subscription {
                session: session.claims.session.to_string(),
                uri: uri.to_owned(),
                since,
            };
            let stored = vault.subscriptions().add(subscription).await;
            if stored.is_ok() {
                lock(&self.view).subscribe(session.claims.session, uri, since);
            }
            log_write_error(stored);
        }
    }

    /// Stores that it is no longer subscribed.
    pub async fn note_unsubscribed(&self, session: &Session, uri: &str) {
        if let Some(vault) = self.vault_of(session) {
            let name = session.claims.session.to_string();
            let removed = vault.subscriptions().remove(&name, uri).await;
            if removed.is_ok() {
                lock(&self.view).unsubscribe(session.claims.session, uri);
            }
            log_write_error(removed);
        }
    }

    /// Stores the lowest severity of log messages that a session's client wants.
    pub async fn level_set(&self, session: &Session, level: LogSeverity) {
        if let Some(vault) = self.vault_of(session) {
            let name = session.claims.session.to_string();
            let stored = vault.sessions().set_level(&name, level.as_str()).await;
            if stored.is_ok() {
                lock(&self.view).set_level(session.claims.session, level);
            }
            log_write_error(stored);
        }
    }

    /// Ends expired sessions and stores the use of the others, for as long as it is polled.
    pub async fn keep(&self) {
        let mut agents = self.vault().map(|vault| vault.agents().changes());
        let mut admitted = HashSet::new();
        self.forget_strangers(&mut admitted);
        let mut live = self.live.clone();
        loop {
            live.mark_unchanged();
            tokio::select! {
                () = sleep(note_every(&live)) => self.note().await,
                () = live.changed() => {}
                // Also notified when another process has written to the vault.
                () = wait_for_agents(agents.as_mut()) => {
                    self.forget_strangers(&mut admitted);
                    if self.store_has_changes() {
                        self.compare_with_store();
                    }
                    self.take_messages();
                }
            }
        }
    }

    /// Ends the sessions that were idle for too long, and stores the use of the others.
    pub async fn note(&self) {
        if self.count(None) > 0 {
            // A session that rests here may be in use at another front.
            self.compare_with_store();
        }
        let (over, uses) = {
            let mut known = lock(&self.known);
            (known.remove_rested(), known.uses())
        };
        self.forget(over);
        let Some(store) = &self.store else { return };
        let state = store.state();
        if state.revision < self.noted.swap(state.revision, Ordering::Relaxed) {
            // The state was replaced by an older one.
            lock(&self.known).lose();
            store.vault.sessions().enqueue_new_history(state);
        } else if !uses.is_empty() {
            let uses = uses.into_iter().map(|(name, idle, heard)| SessionUse {
                id: name.to_string(),
                idle,
                heard,
            });
            log_write_error(store.vault.sessions().note(uses.collect(), state).await);
        }
    }

    /// Removes the sessions of agents without access, unless the agents with access are still those of the last time.
    fn forget_strangers(&self, before: &mut HashSet<String>) {
        let Some(vault) = self.vault() else { return };
        let agents = match vault.agents().list() {
            Ok(agents) => agents.into_iter().filter(|a| a.revoked_ms.is_none()),
            Err(cause) => {
                tracing::error!(%cause, "cannot search for sessions of revoked agents");
                return;
            }
        };
        let mut admitted: HashSet<String> = agents.map(|agent| agent.id).collect();
        // The owner may authenticate like an agent, but is not in the list of agents.
        admitted.insert(OWNER.to_owned());
        if admitted == *before {
            return;
        }
        let over = lock(&self.known).forget_strangers(|id| admitted.contains(id));
        self.forget(over);
        *before = admitted;
    }

    fn forget(&self, names: impl IntoIterator<Item = Uuid>) {
        let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
        if let Some(vault) = self.vault().filter(|_| !names.is_empty()) {
            vault.sessions().enqueue_removal(names);
        }
    }

    /// The vault, if this session is stored there.
    fn vault_of(&self, session: &Session) -> Option<&Vault> {
        self.vault().filter(|_| session.is_kept())
    }

    fn vault(&self) -> Option<&Vault> {
        self.store.as_ref().map(|store| &store.vault)
    }
}

/// The interval at which uses are stored: shorter limits are checked more often, up to ten times a second.
fn note_every(live: &LiveSettings) -> Duration {
    let shortest = live.read(|settings| {
        let limits = &settings.limits;
        limits.session_idle.min(limits.session_unused)
    });
    NOTE_EVERY.min((shortest / 4).max(Duration::from_millis(100)))
}

/// If the vault cannot write, the session continues until the next restart.
fn log_write_error<E: Display>(outcome: Result<(), E>) {
    if let Err(cause) = outcome {
        tracing::error!(%cause, "cannot store a session; changes to it are lost at the next restart");
    }
}

async fn wait_for_agents(agents: Option<&mut watch::Receiver<u64>>) {
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
    use super::super::registry::*;
    use gatewren_base::config::Settings;
    use gatewren_base::sys::Scratch;
    use gatewren_store::vault::NewAgent;

    const MINUTE: Duration = Duration::from_mins(1);

    fn open(vault: Option<&Vault>) -> Sessions {
        open_over(vault, "d", &watch::Sender::new(100))
    }

    /// Opens a table over this state database at this revision.
    fn open_over(vault: Option<&Vault>, database: &str, revision: &watch::Sender<u64>) -> Sessions {
        let store = vault.map(|vault| SessionStore {
            vault: vault.clone(),
            database: database.to_owned(),
            revision: revision.subscribe(),
        });
        Sessions::open(&[1; 32], Settings::default().into(), store).unwrap()
    }

    async fn create_session(sessions: &Sessions, agent: &str) -> Arc<Session> {
        let nothing = Map::new();
        let made = sessions.create(agent, Version::V2025_11_25, &nothing);
        made.await
            .unwrap_or_else(|SessionLimitReached| panic!("it is full"))
    }

    #[tokio::test]
    async fn z3_a_session_is_found_by_its_agent_and_its_whole_id_alone() {
        let sessions = open(None);
        let session = create_session(&sessions, "a").await;
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

    #[tokio::test]
    async fn a_session_of_one_front_is_served_by_another() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vaults = [Vault::open(&path).unwrap(), Vault::open(&path).unwrap()];
        let a = open(Some(&vaults[0]));
        let session = create_session(&a, "a").await;
        session.touch();
        a.note().await;
        let b = open(Some(&vaults[1]));
        a.level_set(&session, LogSeverity::Error).await;
        session.interests.add("u", 3).unwrap();
        a.note_subscribed(&session, "u", 3).await;
        b.compare_with_store();
        let there = b.find(&session.id, "a").unwrap();
        assert!(b.find(&session.id, "b").is_none());
        assert_eq!(there.level(), Some(LogSeverity::Error));
        assert_eq!(there.interests.reported_revision(), Some(3));

        // What the client asks of one front holds at the other.
        b.level_set(&there, LogSeverity::Debug).await;
        there.interests.remove("u");
        b.note_unsubscribed(&there, "u").await;
        b.note_subscribed(&there, "v", 9).await;
        a.compare_with_store();
        assert_eq!(session.level(), Some(LogSeverity::Debug));
        assert_eq!(session.interests.reported_revision(), Some(9));
        session.set_level(LogSeverity::Alert);
        a.compare_with_store();
        assert_eq!(
            session.level(),
            Some(LogSeverity::Alert),
            "nothing has changed"
        );

        b.end(&there).await;
        a.compare_with_store();
        assert!(*session.watch_end().borrow(), "its calls have ended too");
        assert!(a.find(&session.id, "a").is_none());
    }

    #[tokio::test]
    async fn a_session_that_ends_is_not_found_again_before_the_store_knows() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let sessions = open(Some(&vault));
        let session = create_session(&sessions, "a").await;
        let mut ending = std::pin::pin!(sessions.end(&session));
        // The first poll queues the deletion.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let is_queued = ending.as_mut().poll(&mut context).is_pending();
        assert!(sessions.find(&session.id, "a").is_none());
        if is_queued {
            ending.await;
        }
        assert!(sessions.find(&session.id, "a").is_none());
    }

    #[tokio::test]
    async fn a_session_lives_as_long_as_any_front_uses_it() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vaults = [Vault::open(&path).unwrap(), Vault::open(&path).unwrap()];
        let mut settings = Settings::default();
        settings.limits.session_idle = Duration::from_millis(800);
        settings.limits.session_unused = Duration::from_millis(800);
        let [a, b] = vaults.each_ref().map(|vault| {
            let store = SessionStore {
                vault: vault.clone(),
                database: "d".to_owned(),
                revision: watch::Sender::new(100).subscribe(),
            };
            Sessions::open(&[1; 32], settings.clone().into(), Some(store)).unwrap()
        });
        let session = create_session(&a, "a").await;
        for _ in 0..10 {
            sleep(Duration::from_millis(150)).await;
            assert!(b.find(&session.id, "a").is_some());
            b.note().await;
            a.note().await;
        }
        assert!(a.find(&session.id, "a").is_some());
        sleep(Duration::from_millis(1_200)).await;
        a.note().await;
        assert!(a.find(&session.id, "a").is_none() && b.find(&session.id, "a").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn z4_a_session_rests_half_an_hour_and_any_use_begins_it_anew() {
        let sessions = open(None);
        let session = create_session(&sessions, "a").await;
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
        assert!(*session.watch_end().borrow(), "and its memory is free");
    }

    #[tokio::test(start_paused = true)]
    async fn z4_a_session_that_was_never_used_ends_earlier() {
        let sessions = open(None);
        let (used, unused) = (
            create_session(&sessions, "a").await,
            create_session(&sessions, "a").await,
        );
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
        let session = create_session(&sessions, "a").await;
        sessions.level_set(&session, LogSeverity::Error).await;
        sessions.note_subscribed(&session, "u", 3).await;
        sessions.note_subscribed(&session, "v", 9).await;
        sessions.note_unsubscribed(&session, "u").await;
        let after = open(Some(&vault));
        assert!(after.find(&session.id, "b").is_none());
        let woken = after.find(&session.id, "a").unwrap();
        assert_eq!(woken.claims, session.claims);
        assert_eq!(woken.level(), Some(LogSeverity::Error));
        assert_eq!(woken.interests.reported_revision(), Some(9));
        assert!(Arc::ptr_eq(&after.find(&session.id, "a").unwrap(), &woken));
        after.end(&woken).await;
        assert!(open(Some(&vault)).find(&session.id, "a").is_none());
    }

    #[tokio::test]
    async fn z12_what_was_heard_is_noted_with_the_use() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let sessions = open(Some(&vault));
        let session = create_session(&sessions, "a").await;
        session.interests.add("u", 3).unwrap();
        sessions.note_subscribed(&session, "u", 3).await;
        session.interests.rewind(5);
        session.touch();
        sessions.note().await;
        let woken = open(Some(&vault)).find(&session.id, "a").unwrap();
        assert_eq!(woken.interests.reported_revision(), Some(5));
    }

    #[tokio::test]
    async fn what_was_heard_of_another_history_counts_no_more() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let state = |revision| watch::Sender::new(revision);
        let sessions = open_over(Some(&vault), "d", &state(100));
        let session = create_session(&sessions, "a").await;
        session.interests.add("u", 50).unwrap();
        sessions.note_subscribed(&session, "u", 50).await;
        session.interests.rewind(90);
        session.touch();
        sessions.note().await;
        let heard = |database: &str, revision| {
            let sessions = open_over(Some(&vault), database, &state(revision));
            let woken = sessions.find(&session.id, "a").unwrap();
            woken.interests.revision_to_store()
        };
        let nowhere = Some(u64::MAX);
        assert_eq!(heard("d", 100), Some(90));
        assert_eq!(heard("d", 101), Some(90));
        assert_eq!(heard("d", 95), nowhere, "it was at 100 already");
        vault.probe().await.unwrap();
        assert_eq!(heard("d", 200), nowhere, "nobody was told meanwhile");
        let sessions = open_over(Some(&vault), "d", &state(200));
        let woken = sessions.find(&session.id, "a").unwrap();
        woken.interests.remove("u");
        woken.interests.add("u", 200).unwrap();
        sessions.note().await;
        assert_eq!(heard("d", 201), Some(200));
        assert_eq!(heard("e", 201), nowhere, "a database of the same age");
    }

    #[tokio::test]
    async fn a_history_that_is_exchanged_while_we_run_is_noticed() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let revision = watch::Sender::new(100);
        let sessions = open_over(Some(&vault), "d", &revision);
        let session = create_session(&sessions, "a").await;
        session.interests.add("u", 50).unwrap();
        sessions.note().await;
        assert_eq!(session.interests.reported_revision(), Some(50));
        revision.send_replace(60);
        sessions.note().await;
        assert_eq!(session.interests.revision_to_store(), Some(u64::MAX));
    }

    #[tokio::test]
    async fn sessions_end_with_their_agent() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let mut agents = Vec::new();
        for hash in [1, 2] {
            let new = NewAgent {
                name: format!("agent-{hash}"),
                token_sha256: [hash; 32],
                preset: gatewren_base::config::Preset::Observe,
                overrides: "{}".to_owned(),
                space: None,
                expires_ms: None,
            };
            agents.push(vault.agents().add(new).await.unwrap().id);
        }
        let sessions = open(Some(&vault));
        let (first, second) = (
            create_session(&sessions, &agents[0]).await,
            create_session(&sessions, &agents[1]).await,
        );
        let call = first
            .begin(&gatewren_wire::protocol::RequestId::Number(1))
            .unwrap();
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
        assert!(
            !*first.watch_end().borrow(),
            "its call is the guard's to end"
        );
        drop(call);
        assert!(sessions.find(&second.id, &agents[1]).is_some());
        vault.probe().await.unwrap();
        assert_eq!(vault.sessions().list().unwrap().len(), 1);
    }
}
