//! Who gets in and what they may do: HTTP and TLS, authentication, policy, the owner's decisions.
#![forbid(unsafe_code)]

pub mod auth;
pub mod deeds;
pub mod guard;
pub mod http;
pub mod oauth;
pub mod policy;
