//! `gatewren cert`: shows, renews, trusts and replaces the server's certificate.

mod entry;
mod fragment;
mod home;
mod hook;
mod install;
mod renew;
mod server;
mod show;
mod tailscale;
mod trust;

pub use entry::{CertArgs, run};
