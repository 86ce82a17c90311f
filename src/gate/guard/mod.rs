//! Admits or rejects requests, in this order: framing, host, origin, type and length, identity, rate, body.
#![forbid(unsafe_code)]

mod admitted;
mod bearer;
mod body;
mod callers;
mod chain;
mod challenge;
mod client_request_id;
mod connect;
mod cors;
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
mod required_credentials;
mod required_header;
mod scrape;

pub use crate::auth::{AccessEnd, Principal};
pub use admitted::Admitted;
pub use callers::{Callers, theme_cookie};
pub use chain::Guard;
pub use client_request_id::ClientRequestId;
pub use connect::ConsentVisitor;
pub use cors::{PageCredentials, expose, preflight};
pub use edge::EdgeCheck;
pub use host::{AllowedHosts, own_origin};
pub use identity::Authenticator;
pub use login::{clear_cookie, set_cookie, set_device_cookie, set_theme_cookie};
pub use owner_request::{OwnerRequest, OwnerSession, PROOF};
pub use pipe_client::AttachedClient;
pub use refusal::Refusal;
pub use required_credentials::RequiredCredentials;
pub use required_header::RequiredHeader;
