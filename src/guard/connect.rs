//! Whom the pages and endpoints of OAuth meet: the owner, or a stranger with a small body.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use tokio::time::Instant;

use super::body::BodyLimit;
use super::callers::{cookie, not_signed_in};
use super::chain::Guard;
use super::host::check_own_page;
use super::rate::{Pace, Rate};
use super::refusal::Refusal;
use super::visit::proof;
use crate::auth::{LoginKey, SignedIn};
use crate::config::ip_prefix;
use crate::http::Upload;

/// So many programs may register from one address a minute; more are 429. Each registration is a row in the vault.
const REGISTRATIONS_A_MINUTE: u32 = 10;

/// So many codes may be tried from one address a minute; more are 429. In the time of a code that is 50 of 2^60.
const PAIRINGS_A_MINUTE: u32 = 10;

/// Who looks at a page of the owner's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visitor {
    /// The owner, on our own page.
    Owner {
        /// What its forms carry.
        proof: String,
        /// What its login is known again by.
        login: LoginKey,
    },
    /// Nobody who is signed in, on our own page.
    Stranger,
    /// Somebody whom another page has sent here: browsers leave the cookie out then.
    Sent,
}

impl Guard {
    /// Who looks at a page of the owner's. Whoever is not the owner is charged to its address.
    pub async fn looks_in(&self, head: &Parts, peer: SocketAddr) -> Result<Visitor, Refusal> {
        let visitor = match self.check_edge(&head.headers).await {
            Ok(()) => self.visitor(head),
            Err(refusal) => Err(refusal),
        };
        match visitor {
            Ok(owner @ Visitor::Owner { .. }) => Ok(owner),
            Ok(other) => self.charge_stranger(peer).map(|()| other),
            Err(refusal) => Err(self.charge(peer, refusal)),
        }
    }

    fn visitor(&self, head: &Parts) -> Result<Visitor, Refusal> {
        if check_own_page(&head.uri, &head.headers).is_err() {
            return Ok(Visitor::Sent);
        }
        let (Some(callers), Some(cookie)) = (self.callers(), cookie(&head.headers)?) else {
            return Ok(Visitor::Stranger);
        };
        let found = callers.logins.find(cookie).map_err(not_signed_in)?;
        Ok(match found {
            Some((login, SignedIn::Owner)) => Visitor::Owner {
                proof: proof(cookie),
                login,
            },
            _ => Visitor::Stranger,
        })
    }

    /// A request of somebody who shows nothing yet, with its small body, which says who it is. It is charged to its
    /// address.
    pub async fn stranger_body(
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

    /// A body of at most this many bytes for a request without an identity, of which one connection reads few at once.
    pub(super) async fn anonymous_body(&self, body: Upload, most: usize) -> Result<Bytes, Refusal> {
        let presence = body.presence().clone();
        let _place = presence.anonymous_body().ok_or_else(|| {
            let words = "this connection sends too many requests without a token at once; send one after the other";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Refusal::later(status, "too_many_bodies", words, 1)
        })?;
        self.small_body(body, most).await
    }

    /// A body of at most so many bytes.
    pub async fn small_body(&self, body: Upload, most: usize) -> Result<Bytes, Refusal> {
        let limit = BodyLimit {
            bytes: most,
            ..self.body_limit()
        };
        limit.check_declared(&body)?;
        limit.read(body).await
    }

    /// Charges an address for a program that registers from there.
    pub fn charge_registration(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let words = "too many programs register from this address";
        take(&self.registrations, REGISTRATIONS_A_MINUTE, peer, words)
    }

    /// Charges an address for a code of a pairing that is tried from there.
    pub fn charge_pairing(&self, peer: SocketAddr) -> Result<(), Refusal> {
        let words = "too many codes are tried from this address";
        take(&self.pairings, PAIRINGS_A_MINUTE, peer, words)
    }
}

fn take(rate: &Rate<IpAddr>, a_minute: u32, peer: SocketAddr, words: &str) -> Result<(), Refusal> {
    let taken = rate.take(
        Pace::a_minute(a_minute),
        ip_prefix(peer.ip()),
        Instant::now(),
    );
    taken.map_err(|after| {
        Refusal::later(StatusCode::TOO_MANY_REQUESTS, "address_rate", words, after)
    })
}
