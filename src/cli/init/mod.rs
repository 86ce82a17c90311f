//! `gatewren init`: from a package that was installed to a server that a first client can be told of.

mod answers;
mod authority;
mod entry;
mod fragment;
mod service;

pub use entry::{Args, run};
