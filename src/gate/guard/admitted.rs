//! An admitted request: only the chain creates one.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::http::request::Parts;

use crate::auth::Principal;

/// An admitted request: its authenticated sender, its head and its body.
#[derive(Debug)]
pub struct Admitted {
    pub(super) who: Principal,
    pub(super) peer: SocketAddr,
    pub(super) head: Parts,
    pub(super) body: Bytes,
}

impl Admitted {
    /// The agent.
    pub fn who(&self) -> &Principal {
        &self.who
    }

    /// The address that it was sent from.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Method, path and headers.
    pub fn head(&self) -> &Parts {
        &self.head
    }

    /// The complete body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
