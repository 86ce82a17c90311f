//! Checks requests to the OAuth pages and endpoints: from the owner, or from a stranger with a small body.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use tokio::time::Instant;

use super::body::BodyLimit;
use super::callers::{cookie, not_signed_in};
use super::chain::Guard;
use super::host::check_own_page;
use super::owner_request::proof;
use super::rate::RateLimiter;
use super::refusal::Refusal;
use crate::auth::{LoginHolder, LoginKey};
use crate::http::Upload;
use gatewren_base::config::ip_prefix;
use gatewren_base::sys::BurstRate;

/// The maximum number of registrations per minute from one address; more get 429. Each registration is a row in the
/// vault.
const REGISTRATIONS_A_MINUTE: u32 = 10;

/// The maximum number of pairing codes that are tried per minute from one address; more get 429. During the
/// lifetime of a code, that is 50 of 2^60.
const PAIRINGS_A_MINUTE: u32 = 10;

/// The visitor of an owner's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsentVisitor {
    /// The owner, from our own page.
    Owner {
        /// The token that the owner's forms must contain.
        proof: String,
        /// The key of the owner's login.
        login: LoginKey,
    },
    /// A visitor who is not signed in, from our own page.
    Anonymous,
    /// A visitor from another site: browsers then do not send the cookie.
    Sent,
}

impl Guard {
    /// Identifies the visitor of an owner's page. Any visitor except the owner is charged to the address.
    pub async fn identify_visitor(
        &self,
        head: &Parts,
        peer: SocketAddr,
    ) -> Result<ConsentVisitor, Refusal> {
        let visitor = match self.check_edge(&head.headers).await {
            Ok(()) => self.visitor(head),
            Err(refusal) => Err(refusal),
        };
        match visitor {
            Ok(owner @ ConsentVisitor::Owner { .. }) => Ok(owner),
            Ok(other) => self.charge_stranger(peer).map(|()| other),
            Err(refusal) => Err(self.charge(peer, refusal)),
        }
    }

    fn visitor(&self, head: &Parts) -> Result<ConsentVisitor, Refusal> {
        if check_own_page(&head.uri, &head.headers).is_err() {
            return Ok(ConsentVisitor::Sent);
        }
        let (Some(callers), Some(cookie)) = (self.callers(), cookie(&head.headers)?) else {
            return Ok(ConsentVisitor::Anonymous);
        };
        let found = callers.logins.find(cookie).map_err(not_signed_in)?;
        Ok(match found {
            Some((login, LoginHolder::Owner)) => ConsentVisitor::Owner {
                proof: proof(cookie),
                login,
            },
            _ => ConsentVisitor::Anonymous,
        })
    }

    /// Reads an unauthenticated request with a small body, which contains the credentials. The request is charged
    /// to its address.
    pub async fn public_body(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
        most: usize,
    ) -> Result<(Parts, Bytes), Refusal> {
        self.charge_stranger(peer)?;
        let (head, body) = request.into_parts();
        self.check_edge(&head.headers).await?;
        let body = self.anonymous_body(body, most).await?;
        Ok((head, body))
    }

    /// Reads a body of at most this many bytes for a request without an identity; one connection reads only a few
    /// concurrently.
    pub(super) async fn anonymous_body(&self, body: Upload, most: usize) -> Result<Bytes, Refusal> {
        let presence = body.presence().clone();
        let _place = presence.anonymous_body().ok_or_else(|| {
            let words = "this connection sends too many requests without a token at once; send them one after \
                         the other";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Refusal::later(status, "too_many_bodies", words, 1)
        })?;
        self.small_body(body, most).await
    }

    /// Reads a body of at most this many bytes.
    pub async fn small_body(&self, body: Upload, most: usize) -> Result<Bytes, Refusal> {
        let limit = BodyLimit {
            bytes: most,
            ..self.body_limit()
        };
        limit.check_declared(&body)?;
        limit.read(body).await
    }

    /// Charges a registration to its address.
    pub fn charge_registration(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let words = "too many registrations from this address";
        take(&self.registrations, REGISTRATIONS_A_MINUTE, peer, words)
    }

    /// Charges an attempt of a pairing code to its address.
    pub fn charge_pairing(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let words = "too many pairing attempts from this address";
        take(&self.pairings, PAIRINGS_A_MINUTE, peer, words)
    }
}

fn take(
    rate: &RateLimiter<IpAddr>,
    a_minute: u32,
    peer: SocketAddr,
    words: &str,
) -> Result<(), Refusal> {
    let taken = rate.take(
        BurstRate::per_minute(a_minute),
        ip_prefix(peer.ip()),
        Instant::now(),
    );
    taken.map_err(|after| {
        Refusal::later(StatusCode::TOO_MANY_REQUESTS, "address_rate", words, after)
    })
}
