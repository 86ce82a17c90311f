//! `gatewren mdns`: announces the server on the local network, through avahi-daemon.

mod entry;
mod service;

pub use entry::{MdnsArgs, run};
pub use service::follow_pin;
