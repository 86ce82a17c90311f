//! The host's network: name servers, wireless networks and tunnels.

pub mod name_servers;
pub mod nmcli;
pub mod probes;
pub mod resolver_files;
pub mod tunnels;
pub mod wifi;
pub mod wifi_country;
pub mod wifi_profile;
