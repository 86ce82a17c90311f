//! The network around the host: reachability, DNS and the firewall.

mod dns;
mod firewall;
mod naming;
mod probes;
mod reach;
mod tunnels;
mod wifi;

pub use dns::DnsAnswer;
pub use firewall::Firewall;
pub use naming::Naming;
pub use probes::{PingAnswer, PortAnswer};
pub use reach::Network;
