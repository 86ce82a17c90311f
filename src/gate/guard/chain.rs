//! The chain of checks that a request must pass to be admitted.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::time::Instant;

use super::{
    admitted::Admitted,
    body::BodyLimit,
    challenge::challenged,
    edge::EdgeCheck,
    framing::check_framing,
    host::AllowedHosts,
    identity::Authenticator,
    rate::{Concurrency, ConcurrencySlot, NoSlot, QueueLimits, RateLimiter, SlotLimits},
    refusal::Refusal,
    required_credentials::RequiredCredentials,
    required_header::RequiredHeader,
};
use crate::auth::{AccessEnd, AgentId, Principal};
use crate::http::{ConnectionState, RepeatedHeader, Upload};
use gatewren_base::config::{LiveSettings, ip_prefix};
use gatewren_base::sys::{BurstRate, read_lock, write_lock};

/// The maximum number of bodies that an agent sends concurrently; more are refused. Answers and cancellations have
/// bodies too.
const MAX_BODIES: u32 = 256;

/// The limits of the queue of an agent's calls that wait for a slot; at the limit, a call is refused at once.
const CALL_QUEUE: QueueLimits = QueueLimits {
    length: 64,
    time: Duration::from_secs(5),
};

/// All checks between a socket and the engine.
pub struct Guard {
    live: LiveSettings,
    hosts: RwLock<Arc<AllowedHosts>>,
    edge: RwLock<Option<Arc<EdgeCheck>>>,
    required_header: RwLock<Option<RequiredHeader>>,
    pub(super) identity: Authenticator,
    by_address: RateLimiter<IpAddr>,
    by_agent: RateLimiter<AgentId>,
    pub(super) registrations: RateLimiter<IpAddr>,
    pub(super) pairings: RateLimiter<IpAddr>,
    bodies: Concurrency,
    /// Calls that may change or run something.
    calls: Concurrency,
    /// Calls that only read: an agent that has commands in all its slots can still read.
    reads: Concurrency,
    streams: Concurrency,
}

impl Guard {
    /// Creates a guard with the limits of the current settings.
    pub fn new(identity: Authenticator, hosts: AllowedHosts, live: LiveSettings) -> Self {
        Self {
            live,
            hosts: RwLock::new(Arc::new(hosts)),
            edge: RwLock::default(),
            required_header: RwLock::default(),
            identity,
            by_address: RateLimiter::default(),
            by_agent: RateLimiter::default(),
            registrations: RateLimiter::default(),
            pairings: RateLimiter::default(),
            bodies: Concurrency::default(),
            calls: Concurrency::default(),
            reads: Concurrency::default(),
            streams: Concurrency::default(),
        }
    }

    /// Sets or removes the edge proxy that must authenticate requests.
    pub fn set_edge(&self, edge: Option<EdgeCheck>) {
        *write_lock(&self.edge) = edge.map(Arc::new);
    }

    /// Sets or removes the header that each request of an agent must have.
    pub fn set_required_header(&self, header: Option<RequiredHeader>) {
        *write_lock(&self.required_header) = header;
    }

    /// The current names and origins.
    pub fn hosts(&self) -> Arc<AllowedHosts> {
        read_lock(&self.hosts).clone()
    }

    /// Sets the current names and addresses of the host.
    pub fn set_hosts(&self, hosts: AllowedHosts) {
        *write_lock(&self.hosts) = Arc::new(hosts);
    }

    /// The first checks, for every path: framing, Host and Origin.
    pub fn check_head(&self, head: &Parts, peer: SocketAddr) -> Result<(), Refusal> {
        let hosts = self.hosts();
        let known = check_framing(head)
            .and_then(|()| hosts.check_host(head))
            .and_then(|()| hosts.check_origin(&head.headers));
        known.map_err(|refusal| self.charge(peer, refusal))
    }

    /// The complete chain for a path that requires an agent.
    pub async fn admit(
        &self,
        required: RequiredCredentials,
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
            Ok(()) => {
                let repeated = body.presence().authorization();
                self.authenticate(required, &head, peer, repeated).await
            }
            Err(refusal) => Err(refusal),
        };
        note_identity(body.presence(), who.as_ref());
        let who = who.map_err(|refusal| self.charge(peer, challenged(required, &head, refusal)))?;
        self.charge_agent(&who)?;
        // Only a POST has a meaningful body.
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

    /// Reads a body. An agent sends at most [`MAX_BODIES`] concurrently, or `agent_calls` if that is more: the
    /// limit applies before the server knows whether the body is a call or an answer.
    async fn read(&self, who: &Principal, body: Upload) -> Result<Bytes, Refusal> {
        let calls = self.live.read(|settings| settings.limits.agent_calls);
        let most = SlotLimits::own(calls.max(MAX_BODIES));
        let place = self.bodies.enter(who.agent_id(), most);
        let _place = place.map_err(|_| {
            let words = "this agent sends too many requests at once";
            later("too_many_bodies", words, 1)
        })?;
        self.body_limit().read(body).await
    }

    /// Charges an unauthenticated request to its address. A request with a valid token is never charged, so that a
    /// stranger cannot lock out an agent at the same address.
    pub fn charge(&self, peer: SocketAddr, refusal: Refusal) -> Refusal {
        self.charge_stranger(peer).err().unwrap_or(refusal)
    }

    /// Charges a request for a public path to its address.
    pub fn charge_stranger(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let pace = self.live.read(|settings| {
            let limits = &settings.limits;
            BurstRate::per_second(limits.address_rate, limits.address_burst)
        });
        let (from, now) = (ip_prefix(peer.ip()), Instant::now());
        let taken = self.by_address.take(pace, from, now);
        taken.map_err(|after| {
            let words = "too many requests without a token from this address";
            Refusal::later(StatusCode::TOO_MANY_REQUESTS, "address_rate", words, after)
        })
    }

    /// Checks what a head declares about its body.
    fn check_body(&self, headers: &HeaderMap, body: &Upload) -> Result<(), Refusal> {
        check_type(headers)?;
        self.body_limit().check_declared(body)
    }

    /// The current limits of a body.
    pub(super) fn body_limit(&self) -> BodyLimit {
        self.live.read(|settings| BodyLimit {
            bytes: settings.limits.body_limit,
            within: settings.limits.body_timeout,
        })
    }

    /// Authenticates the sender, from the head only.
    async fn authenticate(
        &self,
        required: RequiredCredentials,
        head: &Parts,
        peer: SocketAddr,
        repeated: &RepeatedHeader,
    ) -> Result<Principal, Refusal> {
        self.check_edge(&head.headers).await?;
        let identity = &self.identity;
        let who = identity.identify(required, head, peer.ip(), repeated)?;
        self.check_required(&head.headers)?;
        Ok(who)
    }

    /// Whether the owner has enabled the metrics for requests from the host itself.
    pub(super) fn scrapes_from_loopback(&self) -> bool {
        self.live.read(|settings| settings.metrics.loopback)
    }

    /// Checks the header that the owner requires in every request.
    pub(super) fn check_required(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let required = read_lock(&self.required_header);
        required
            .as_ref()
            .map_or(Ok(()), |required| required.check(headers))
    }

    /// Checks the token of the edge proxy, if there is one.
    pub(super) async fn check_edge(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.edge() {
            // Boxed, because few have an edge proxy: it includes the fetching of keys, and every request would need
            // room for it.
            Some(edge) => Box::pin(edge.check(headers)).await,
            None => Ok(()),
        }
    }

    fn edge(&self) -> Option<Arc<EdgeCheck>> {
        let edge = self.edge.read();
        edge.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reserves a call slot of an agent. Calls that only read have the same number of separate slots. Answers and
    /// cancellations need no slot, because they may free one.
    pub fn call(&self, who: &Principal, only_reads: bool) -> Result<ConcurrencySlot, Refusal> {
        let (calls, most) = self.calls_of(who, only_reads);
        let place = calls.enter(who.agent_id(), most);
        place.map_err(too_many_calls)
    }

    /// Reserves a call slot; waits a short time if none is free.
    pub async fn call_in_time(
        &self,
        who: &Principal,
        only_reads: bool,
    ) -> Result<ConcurrencySlot, Refusal> {
        let (calls, most) = self.calls_of(who, only_reads);
        let place = calls.enter_in_time(who.agent_id(), most, CALL_QUEUE).await;
        place.map_err(too_many_calls)
    }

    fn calls_of(&self, who: &Principal, only_reads: bool) -> (&Concurrency, SlotLimits) {
        let (own, together) = self
            .live
            .read(|settings| (settings.limits.agent_calls, settings.limits.max_calls));
        let own = lower_limit(who.policy().overrides.concurrent_calls, own);
        let calls = if only_reads { &self.reads } else { &self.calls };
        (calls, SlotLimits { own, together })
    }

    /// Charges an agent for the further messages of a batch; the first one was charged as the request.
    pub fn charge_batch(&self, who: &Principal, messages: usize) -> Result<(), Refusal> {
        (1..messages).try_for_each(|_| self.charge_agent(who))
    }

    /// Reserves a stream slot of an agent; streams are counted separately from calls.
    pub fn stream(&self, who: &Principal) -> Result<ConcurrencySlot, Refusal> {
        let most = self.live.read(|settings| SlotLimits {
            own: settings.limits.max_streams_per_agent,
            together: settings.limits.max_streams,
        });
        let place = self.streams.enter(who.agent_id(), most);
        place.map_err(|_| {
            let words = "too many streams are open, of this agent or in total; close one";
            later("too_many_streams", words, 5)
        })
    }

    /// The maximum size of a message in bytes.
    pub fn largest_message(&self) -> usize {
        self.body_limit().bytes
    }

    /// The current principal of an authenticated agent.
    ///
    /// # Errors
    /// Why its access has ended.
    pub fn current(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        self.identity.current(who)
    }

    /// Waits until the policy or reach of an authenticated agent changes, and returns the new principal.
    ///
    /// # Errors
    /// Why its access has ended.
    pub async fn wait_for_change(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        self.identity.wait_for_change(who).await
    }

    /// Waits until the reach of an authenticated agent changes: it may then no longer receive the same notifications.
    ///
    /// # Errors
    /// Why its access has ended, if it ended instead.
    pub async fn wait_for_new_reach(&self, who: &Principal) -> Result<(), AccessEnd> {
        let mut now = who.clone();
        while now.reach() == who.reach() {
            now = self.identity.wait_for_change(&now).await?;
        }
        Ok(())
    }

    /// Waits until the access of an authenticated agent ends, and returns why.
    pub async fn wait_for_rejection(&self, who: &Principal) -> AccessEnd {
        self.identity.wait_for_rejection(who).await
    }

    /// Charges an agent for a message; their number per minute is limited.
    pub fn charge_agent(&self, who: &Principal) -> Result<(), Refusal> {
        let own = who.policy().overrides.calls_per_minute;
        let of_all = self.live.read(|settings| settings.limits.agent_rate);
        let pace = BurstRate::per_minute(lower_limit(own, of_all));
        let agent = who.agent_id().clone();
        let taken = self.by_agent.take(pace, agent, Instant::now());
        taken.map_err(|after| {
            let words = "this agent has reached its limit of calls a minute";
            Refusal::later(StatusCode::TOO_MANY_REQUESTS, "agent_rate", words, after)
        })
    }
}

/// Marks the connection as authenticated, or records the failed authentication for its source.
fn note_identity(presence: &ConnectionState, who: Result<&Principal, &Refusal>) {
    match who {
        Ok(_) => presence.identify(),
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            presence.note_failed_authentication();
        }
        Err(_) => {}
    }
}

/// The agent's own limit, if it is the lower one.
fn lower_limit(own: Option<u32>, of_all: u32) -> u32 {
    own.map_or(of_all, |own| own.min(of_all))
}

fn too_many_calls(missing: NoSlot) -> Refusal {
    let (error, words) = match missing {
        NoSlot::OfAgent => (
            "too_many_calls",
            "this agent has too many calls at once; wait for one to end",
        ),
        NoSlot::OfAll => (
            "too_many_calls_of_all",
            "all agents together have too many calls at once; try again",
        ),
    };
    later(error, words, 1)
}

/// A refusal with 503 and the number of seconds until a retry.
fn later(error: &'static str, words: &str, after_s: u64) -> Refusal {
    Refusal::later(StatusCode::SERVICE_UNAVAILABLE, error, words, after_s)
}

/// The media type of a message.
const JSON: &str = "application/json";

/// Refuses a body that is not declared as JSON (415).
pub fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    if types.next().is_some_and(is_json) && types.next().is_none() {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "send the message with Content-Type: application/json",
    ))
}

fn is_json(media: &HeaderValue) -> bool {
    // Most clients send it without parameters and in lower case.
    if media.as_bytes() == JSON.as_bytes() {
        return true;
    }
    let media = media.to_str().unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default();
    media.trim().eq_ignore_ascii_case(JSON)
}
