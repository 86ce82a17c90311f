//! Admits or rejects requests, in this order: framing, host, origin, type and length, identity, rate, body.
#![forbid(unsafe_code)]

mod admitted;
mod bearer;
mod body;
mod callers;
mod chain;
mod challenge;
mod connect;
mod cors;
mod door;
mod edge;
mod edge_keys;
mod framing;
mod host;
mod identity;
mod login;
mod owner_request;
mod pipe_client;
mod rate;
mod refusal;
mod scrape;

pub use admitted::Admitted;
pub use callers::Callers;
pub use chain::Guard;
pub use connect::Visitor;
pub use cors::{expose, preflight};
pub use door::Door;
pub use edge::Edge;
pub use host::{Hosts, own_origin};
pub use identity::Identity;
pub use login::{clear_cookie, set_cookie, set_device_cookie};
pub use owner_request::{PROOF, Session, Visit};
pub use pipe_client::Attached;
pub use refusal::Refusal;
