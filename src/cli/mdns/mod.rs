//! `gatewren mdns`: makes the server known on the local network, through avahi-daemon.

mod entry;
mod service;

pub use entry::{Args, run};
pub use service::follow_pin;
