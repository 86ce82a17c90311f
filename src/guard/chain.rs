//! The chain: one request comes in, or a refusal goes out.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::time::Instant;

use super::{
    admitted::Admitted,
    body::BodyLimit,
    challenge::challenged,
    door::Door,
    edge::Edge,
    framing::check_framing,
    host::Hosts,
    identity::Identity,
    rate::{Concurrency, Most, Pace, Place, Queue, Rate},
    refusal::Refusal,
};
use crate::auth::{AgentId, Principal};
use crate::config::{Live, ip_prefix};
use crate::http::{Presence, Upload};

/// Bodies that one agent sends at once; one more is refused. Answers and cancellations are bodies too.
const MAX_BODIES: u32 = 256;

/// Calls of one agent that wait for a place; one more is refused at once.
const CALL_QUEUE: Queue = Queue {
    length: 64,
    time: Duration::from_secs(5),
};

/// Everything that stands between a socket and the engine.
pub struct Guard {
    live: Live,
    hosts: RwLock<Arc<Hosts>>,
    edge: RwLock<Option<Arc<Edge>>>,
    pub(super) identity: Identity,
    by_address: Rate<IpAddr>,
    by_agent: Rate<AgentId>,
    pub(super) registrations: Rate<IpAddr>,
    pub(super) pairings: Rate<IpAddr>,
    bodies: Concurrency,
    /// Calls that may change something, or run something.
    calls: Concurrency,
    /// Calls that only read: an agent with commands in all its places can still read.
    reads: Concurrency,
    streams: Concurrency,
}

impl Guard {
    /// A guard with the limits of the settings in force.
    pub fn new(identity: Identity, hosts: Hosts, live: Live) -> Self {
        Self {
            live,
            hosts: RwLock::new(Arc::new(hosts)),
            edge: RwLock::default(),
            identity,
            by_address: Rate::default(),
            by_agent: Rate::default(),
            registrations: Rate::default(),
            pairings: Rate::default(),
            bodies: Concurrency::default(),
            calls: Concurrency::default(),
            reads: Concurrency::default(),
            streams: Concurrency::default(),
        }
    }

    /// From now on requests come through a proxy that says who is there, or need not.
    pub fn set_edge(&self, edge: Option<Edge>) {
        *self.edge.write().unwrap_or_else(PoisonError::into_inner) = edge.map(Arc::new);
    }

    /// The names and origins as they are now.
    pub fn hosts(&self) -> Arc<Hosts> {
        self.hosts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Follows the box's names and addresses.
    pub fn set_hosts(&self, hosts: Hosts) {
        *self.hosts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosts);
    }

    /// The first links, which every path has: framing, Host and Origin.
    pub fn greet(&self, head: &Parts, peer: SocketAddr) -> Result<(), Refusal> {
        let hosts = self.hosts();
        let known = check_framing(head)
            .and_then(|()| hosts.check_host(head))
            .and_then(|()| hosts.check_origin(&head.headers));
        known.map_err(|refusal| self.charge(peer, refusal))
    }

    /// The whole chain for a door that asks for an agent.
    pub async fn admit(
        &self,
        door: Door,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Admitted, Refusal> {
        let (head, body) = request.into_parts();
        let posts = head.method == Method::POST;
        let fits = if posts {
            self.check_body(&head.headers, &body)
        } else {
            Ok(())
        };
        let who = match fits {
            Ok(()) => self.known(door, &head, peer).await,
            Err(refusal) => Err(refusal),
        };
        note_identity(body.presence(), who.as_ref());
        let who = who.map_err(|refusal| self.charge(peer, challenged(door, &head, refusal)))?;
        self.charge_agent(&who)?;
        // Only POST has a body that means anything.
        let body = if posts {
            self.read(&who, body).await?
        } else {
            Bytes::new()
        };
        Ok(Admitted {
            who,
            peer,
            head,
            body,
        })
    }

    /// Reads a body. An agent sends at most [`MAX_BODIES`] at once, or `agent_calls` if that is more: the bound applies
    /// before the server knows whether the body is a call or an answer.
    async fn read(&self, who: &Principal, body: Upload) -> Result<Bytes, Refusal> {
        let calls = self.live.read(|settings| settings.limits.agent_calls);
        let most = Most::own(calls.max(MAX_BODIES));
        let place = self.bodies.enter(who.agent_id(), most);
        let _place = place.ok_or_else(|| {
            let words = "this agent is sending as many requests at once as it may";
            later("too_many_bodies", words, 1)
        })?;
        self.body_limit().read(body).await
    }

    /// Charges a request that showed no token to its address. Whoever holds one is never charged, so that
    /// a stranger cannot lock out a neighbour.
    pub fn charge(&self, peer: SocketAddr, refusal: Refusal) -> Refusal {
        self.charge_stranger(peer).err().unwrap_or(refusal)
    }

    /// Charges a request for what asks for no token to its address.
    pub fn charge_stranger(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let pace = self.live.read(|settings| {
            let limits = &settings.limits;
            Pace::a_second(limits.address_rate, limits.address_burst)
        });
        let (from, now) = (ip_prefix(peer.ip()), Instant::now());
        let taken = self.by_address.take(pace, from, now);
        taken.map_err(|after| {
            let words = "too many requests without a token from this address";
            Refusal::later(StatusCode::TOO_MANY_REQUESTS, "address_rate", words, after)
        })
    }

    /// What a head says of its body.
    fn check_body(&self, headers: &HeaderMap, body: &Upload) -> Result<(), Refusal> {
        check_type(headers)?;
        self.body_limit().check_declared(body)
    }

    /// What bounds a body that is read now.
    pub(super) fn body_limit(&self) -> BodyLimit {
        self.live.read(|settings| BodyLimit {
            bytes: settings.limits.body_limit,
            within: settings.limits.body_timeout,
        })
    }

    /// Who asks, from the head alone.
    async fn known(
        &self,
        door: Door,
        head: &Parts,
        peer: SocketAddr,
    ) -> Result<Principal, Refusal> {
        self.check_edge(&head.headers).await?;
        let who = self.identity.identify(door, head, peer.ip())?;
        self.check_required(&head.headers)?;
        Ok(who)
    }

    /// Whether the owner has the metrics told to whoever is on the box.
    pub(super) fn scrapes_from_loopback(&self) -> bool {
        self.live.read(|settings| settings.metrics.loopback)
    }

    /// The header that the owner wants every request to carry.
    pub(super) fn check_required(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.live.read(|settings| {
            let name = settings.access.required_header.as_str();
            if name.is_empty() || headers.contains_key(name) {
                return Ok(());
            }
            let words =
                format!("the owner of this box wants each request to carry the header {name}");
            let status = StatusCode::FORBIDDEN;
            Err(Refusal::new(status, "header_required", words))
        })
    }

    /// What a proxy at the edge must say, where there is one.
    pub(super) async fn check_edge(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.edge() {
            // Apart, for few have one: its keys are fetched in there, and every request would carry the room for it.
            Some(edge) => Box::pin(edge.check(headers)).await,
            None => Ok(()),
        }
    }

    fn edge(&self) -> Option<Arc<Edge>> {
        let edge = self.edge.read();
        edge.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A place among an agent's calls. Calls that only read have as many places of their own. Answers and cancellations
    /// need no place, because they may free one.
    pub fn call(&self, who: &Principal, only_reads: bool) -> Result<Place, Refusal> {
        let (calls, most) = self.calls_of(who, only_reads);
        let place = calls.enter(who.agent_id(), most);
        place.ok_or_else(too_many_calls)
    }

    /// The same; waits a short time for a place where there is none.
    pub async fn call_in_time(&self, who: &Principal, only_reads: bool) -> Result<Place, Refusal> {
        let (calls, most) = self.calls_of(who, only_reads);
        let place = calls.enter_in_time(who.agent_id(), most, CALL_QUEUE).await;
        place.ok_or_else(too_many_calls)
    }

    fn calls_of(&self, who: &Principal, only_reads: bool) -> (&Concurrency, Most) {
        let of_all = self.live.read(|settings| settings.limits.agent_calls);
        let own = lowered(who.policy().overrides.concurrent_calls, of_all);
        let calls = if only_reads { &self.reads } else { &self.calls };
        (calls, Most::own(own))
    }

    /// Charges an agent for the further messages of a batch, the first of which came in as a request.
    pub fn charge_batch(&self, who: &Principal, messages: usize) -> Result<(), Refusal> {
        (1..messages).try_for_each(|_| self.charge_agent(who))
    }

    /// A place among an agent's open streams, which are counted apart from its calls.
    pub fn stream(&self, who: &Principal) -> Result<Place, Refusal> {
        let most = self.live.read(|settings| Most {
            own: settings.limits.max_streams_per_agent,
            together: settings.limits.max_streams,
        });
        let place = self.streams.enter(who.agent_id(), most);
        place.ok_or_else(|| {
            let words =
                "as many streams are open as this agent, or all together, may have; close one";
            later("too_many_streams", words, 5)
        })
    }

    /// The largest message that is read, in bytes.
    pub fn largest_message(&self) -> usize {
        self.body_limit().bytes
    }

    /// An agent that came in, as it would come in now; `None` if it would not.
    pub fn current(&self, who: &Principal) -> Option<Principal> {
        self.identity.current(who)
    }

    /// Waits until an agent that came in would come in with another policy or reach: it as it would then; `None`
    /// when it would not come in any more.
    pub async fn changed(&self, who: &Principal) -> Option<Principal> {
        self.identity.changed(who).await
    }

    /// Waits until what an agent that came in may hear of is no longer what it was: it would come in with another
    /// reach, or not at all.
    pub async fn displaced(&self, who: &Principal) {
        let mut now = who.clone();
        while let Some(later) = self.identity.changed(&now).await {
            if later.reach() != who.reach() {
                return;
            }
            now = later;
        }
    }

    /// Waits until an agent that came in would no longer come in.
    pub async fn expelled(&self, who: &Principal) {
        self.identity.expelled(who).await;
    }

    /// Charges an agent for a message; it may send so many a minute.
    pub fn charge_agent(&self, who: &Principal) -> Result<(), Refusal> {
        let own = who.policy().overrides.calls_per_minute;
        let of_all = self.live.read(|settings| settings.limits.agent_rate);
        let pace = Pace::a_minute(lowered(own, of_all));
        let agent = who.agent_id().clone();
        let taken = self.by_agent.take(pace, agent, Instant::now());
        taken.map_err(|after| {
            let words = "this agent has used up its calls for now";
            Refusal::later(StatusCode::TOO_MANY_REQUESTS, "agent_rate", words, after)
        })
    }
}

/// Has the connection count as an agent's, or its source as one that shows no valid credentials.
fn note_identity(presence: &Presence, who: Result<&Principal, &Refusal>) {
    match who {
        Ok(_) => presence.identify(),
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            presence.note_failed_authentication();
        }
        Err(_) => {}
    }
}

/// A limit of an agent's own, where it is the lower one.
fn lowered(own: Option<u32>, of_all: u32) -> u32 {
    own.map_or(of_all, |own| own.min(of_all))
}

fn too_many_calls() -> Refusal {
    let words = "this agent has as many calls at once as it may; wait for one to end";
    later("too_many_calls", words, 1)
}

/// 503: what there is too much of will be less in a while.
fn later(error: &'static str, words: &str, after_s: u64) -> Refusal {
    Refusal::later(StatusCode::SERVICE_UNAVAILABLE, error, words, after_s)
}

/// Refuses a body that does not say that it is JSON (415).
pub fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let media = types
        .next()
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") && types.next().is_none() {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "send the message with Content-Type: application/json",
    ))
}
