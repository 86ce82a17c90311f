//! A stateful session in memory: its calls, open questions, streams and subscriptions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex as Turn, oneshot, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::replay::Replay;
use super::session_token::SessionClaims;
use crate::dispatch::{CallContext, Engine, Interests, Listener, ListenerEvent};
use crate::transport::in_flight::{CallInFlight, CancelFlag, InFlight};
use gatewren_base::sys::lock;
use gatewren_wire::protocol::{LogSeverity, RequestId};

/// The maximum number of calls, and of questions, in progress in a session; more are refused.
const MAX_OPEN: usize = 256;

/// The longest time until a new session is stored, on a slow disk.
const STORED_WITHIN: Duration = Duration::from_secs(10);

/// A client's answer to a request of this server: a result or an error.
pub type ClientAnswer = Result<Value, Value>;

/// A session.
pub struct Session {
    /// The complete id, as the client sends it; empty for a session that lasts as long as its connection.
    pub id: Box<str>,
    /// The claims of the id.
    pub claims: SessionClaims,
    /// The resources that it is subscribed to.
    pub interests: Arc<Interests>,
    /// The buffers of its streams, for clients that lost one.
    pub replay: Arc<Replay>,
    /// Receives the session's events. The active stream holds the lock; `None` until the first stream.
    pub listener: Turn<Option<Listener>>,
    level: Mutex<Option<LogSeverity>>,
    calls: InFlight,
    questions: Mutex<HashMap<i64, oneshot::Sender<ClientAnswer>>>,
    next_question: AtomicI64,
    streams: Mutex<Vec<u64>>,
    next_stream: AtomicU64,
    carrier: watch::Sender<u64>,
    streams_begun: OnceLock<u64>,
    ended: watch::Sender<bool>,
    used: Mutex<Used>,
    is_stored: AtomicBool,
}

/// The times at which a session was used. They are monotonic, because the clock of the host may jump.
#[derive(Debug, Clone, Copy)]
struct Used {
    last: Instant,
    /// The last use that was stored.
    noted: Instant,
    /// The latest time of the last use that the store had, of whichever front.
    stored: Option<Instant>,
    /// Whether it was used after `initialize`.
    ever: bool,
}

impl Session {
    /// Creates a session with nothing in progress.
    pub fn new(id: &str, claims: SessionClaims) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            id: id.into(),
            replay: Replay::new(&claims.session),
            claims,
            interests: Arc::default(),
            listener: Turn::default(),
            level: Mutex::new(None),
            calls: InFlight::new(MAX_OPEN),
            questions: Mutex::default(),
            next_question: AtomicI64::new(random_question()),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            carrier: watch::Sender::new(0),
            streams_begun: OnceLock::new(),
            ended: watch::Sender::new(false),
            used: Mutex::new(Used {
                last: now,
                noted: now,
                stored: None,
                ever: false,
            }),
            is_stored: AtomicBool::new(false),
        })
    }

    /// Creates a session that lasts as long as its connection and is not stored.
    pub fn of_connection(claims: SessionClaims) -> Arc<Self> {
        Self::new("", claims)
    }

    /// Whether its client may resume it, also after a restart.
    pub fn is_kept(&self) -> bool {
        !self.id.is_empty()
    }

    /// Records that the store has it: without it there, another front has ended it.
    pub fn mark_stored(&self) {
        self.is_stored.store(true, Ordering::Relaxed);
    }

    /// Whether the store has it.
    pub fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Relaxed)
    }

    /// Records a use at any front that the store has, at this time or up to `grace` later.
    pub fn note_stored_use(&self, at: Instant, grace: Duration) {
        let mut used = lock(&self.used);
        // A session is stored moments after it is created, which is no use.
        used.ever |= at > used.last + STORED_WITHIN;
        let latest = (at + grace).min(Instant::now());
        used.stored = used.stored.max(Some(latest));
    }

    /// Marks it as used.
    pub fn touch(&self) {
        let mut used = lock(&self.used);
        used.last = Instant::now();
        used.ever = true;
    }

    /// The time since its last use; `None` while something is in progress.
    pub fn idle(&self) -> Option<Duration> {
        let busy = !self.calls.is_empty() || !lock(&self.streams).is_empty();
        (!busy).then(|| {
            let used = lock(&self.used);
            used.stored
                .map_or(used.last, |stored| stored.max(used.last))
                .elapsed()
        })
    }

    /// Whether it was used after `initialize`.
    pub fn was_used(&self) -> bool {
        lock(&self.used).ever
    }

    /// The time since its last use, if it was used since the last call of this function.
    pub fn use_to_note(&self) -> Option<Duration> {
        if self.idle().is_none() {
            self.touch();
        }
        let mut used = lock(&self.used);
        let is_newer = used.last > used.noted;
        used.noted = used.last;
        is_newer.then(|| used.last.elapsed())
    }

    /// The lowest severity of log messages that its client wants.
    pub fn level(&self) -> Option<LogSeverity> {
        *lock(&self.level)
    }

    /// Sets that severity.
    pub fn set_level(&self, level: LogSeverity) {
        *lock(&self.level) = Some(level);
    }

    /// Creates a listener for this session and its client, `client`; [`Self::wants`] filters its events.
    pub fn listen(&self, engine: &Engine, client: &CallContext) -> Listener {
        let interests = self.interests.clone();
        Listener::new(engine, client, interests)
            .with_patches(self.claims.capabilities().wants_patches())
            .with_messages(&engine.catalog, &self.claims.session.to_string())
    }

    /// Whether its client wants an event; a log message must have at least the requested severity.
    pub fn wants(&self, event: &ListenerEvent) -> bool {
        match event {
            ListenerEvent::Logged(log) => self
                .level()
                .map_or(log.is_from_owner, |least| log.level >= least),
            ListenerEvent::Updated { .. } | ListenerEvent::List(_) => true,
            // Sessions have no tasks.
            ListenerEvent::Task(_) => false,
        }
    }

    /// Starts a call; `None` if its id is in use or too many are in progress.
    pub fn begin(&self, id: &RequestId) -> Option<CallInFlight> {
        self.calls.begin(id)
    }

    /// Cancels a call; returns whether it was in progress.
    pub fn cancel(&self, id: &RequestId) -> bool {
        self.calls.cancel(id)
    }

    /// Returns the flag that cancels a request in progress.
    pub fn flag(&self, id: &RequestId) -> Option<CancelFlag> {
        self.calls.flag(id)
    }

    /// Opens a question to the client; returns its id and the receiver of the answer.
    pub fn question(&self) -> Option<(i64, oneshot::Receiver<ClientAnswer>)> {
        let mut questions = lock(&self.questions);
        questions.retain(|_, asked| !asked.is_closed());
        if questions.len() >= MAX_OPEN {
            return None;
        }
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        questions.insert(id, sender);
        Some((id, receiver))
    }

    /// Delivers an answer; returns one that is to no open question.
    pub fn deliver(&self, id: &RequestId, answer: ClientAnswer) -> Option<ClientAnswer> {
        let RequestId::Number(id) = id else {
            return Some(answer);
        };
        let Some(asked) = lock(&self.questions).remove(id) else {
            return Some(answer);
        };
        let _ = asked.send(answer);
        None
    }

    /// Records that a stream begins at this revision. Returns whether it is the first since the restart, and the
    /// revision at which the first one began.
    pub fn begin_streams(&self, revision: u64) -> (bool, u64) {
        let first = self.streams_begun.set(revision).is_ok();
        (first, self.streams_begun.get().copied().unwrap_or(revision))
    }

    /// Opens a stream. The newest stream carries the notifications; an older one is inactive until it is the newest
    /// again.
    pub fn open_stream(self: &Arc<Self>) -> OpenStream {
        let id = self.next_stream.fetch_add(1, Ordering::Relaxed);
        lock(&self.streams).push(id);
        self.carrier.send_replace(id);
        OpenStream {
            session: self.clone(),
            id,
            carrier: self.carrier.subscribe(),
        }
    }

    /// Ends everything in progress.
    pub fn end(&self) {
        self.ended.send_replace(true);
        self.replay.clear();
        self.calls.cancel_all();
    }

    /// Returns a receiver that becomes true when the session has ended.
    pub fn watch_end(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }
}

/// The id of the first question. It is random, so that an answer to a question of another front, or from before a
/// restart, answers no other question. JavaScript has the numbers below 2^53.
fn random_question() -> i64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    i64::try_from(high >> 16).unwrap_or(1)
}

/// An open stream; dropping it passes the notifications to the previous one.
pub struct OpenStream {
    session: Arc<Session>,
    id: u64,
    carrier: watch::Receiver<u64>,
}

impl OpenStream {
    /// Waits until this stream carries the notifications.
    pub async fn carries(&mut self) {
        let id = self.id;
        let _ = self.carrier.wait_for(|carrier| *carrier == id).await;
    }

    /// Waits until another stream carries them.
    pub async fn rests(&mut self) {
        let id = self.id;
        let _ = self.carrier.wait_for(|carrier| *carrier != id).await;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = lock(&self.session.streams);
        streams.retain(|id| *id != self.id);
        self.session
            .carrier
            .send_replace(streams.last().copied().unwrap_or(0));
        drop(streams);
        self.session.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::*;
    use gatewren_wire::protocol::Version;

    fn session() -> Arc<Session> {
        let none = serde_json::Map::new();
        Session::new("id", SessionClaims::new("a", Version::V2025_11_25, &none))
    }

    #[tokio::test]
    async fn the_newest_stream_carries_and_the_older_one_takes_over() {
        let session = session();
        let mut old = session.open_stream();
        old.carries().await;
        let mut new = session.open_stream();
        new.carries().await;
        old.rests().await;
        drop(new);
        old.carries().await;
    }

    #[tokio::test]
    async fn a_session_is_not_idle_while_a_call_is_under_way() {
        let session = session();
        let call = session.begin(&RequestId::Number(1)).unwrap();
        assert!(session.idle().is_none());
        session.end();
        call.cancelled().await;
        drop(call);
        assert!(session.idle().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_use_is_news_once_and_what_is_open_is_used_all_the_time() {
        let minute = Duration::from_mins(1);
        let session = session();
        tokio::time::advance(minute).await;
        assert_eq!((session.was_used(), session.use_to_note()), (false, None));
        session.touch();
        tokio::time::advance(minute).await;
        assert_eq!(session.use_to_note(), Some(minute));
        assert_eq!((session.was_used(), session.use_to_note()), (true, None));
        let stream = session.open_stream();
        tokio::time::advance(minute).await;
        assert_eq!(session.idle(), None);
        assert_eq!(session.use_to_note(), Some(Duration::ZERO));
        tokio::time::advance(minute).await;
        drop(stream);
        assert_eq!(
            session.idle(),
            Some(Duration::ZERO),
            "it was open until now"
        );
    }

    #[tokio::test]
    async fn an_answer_reaches_its_question_and_no_other() {
        let session = session();
        let (id, answer) = session.question().unwrap();
        session.deliver(&RequestId::Number(id + 1), Ok(Value::Null));
        session.deliver(&RequestId::Text(id.to_string()), Ok(Value::Null));
        session.deliver(&RequestId::Number(id), Ok(Value::Bool(true)));
        assert_eq!(answer.await.unwrap(), Ok(Value::Bool(true)));
    }
}
