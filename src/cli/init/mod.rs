//! `gatewren init`: sets up an installed package as a server that clients can connect to.

mod answers;
mod authority;
mod entry;
mod fragment;
mod helper_file;
mod profile;
mod report;
mod runtimes;
mod service;

pub use entry::{InitArgs, run};
