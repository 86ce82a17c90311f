//! `gatewren cert`: which certificate is served, how it is renewed, trusted, and replaced by one of the owner's.

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

pub use entry::{Args, run};
