//! Who gets in and what they may do: HTTP and TLS, authentication, policy, the owner's decisions.
#![forbid(unsafe_code)]

pub mod auth;
pub mod guard;
pub mod http;
pub mod oauth;
pub mod owner_actions;
pub mod policy;
