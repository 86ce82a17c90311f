//! `wifi_*`: the wireless network that the host is joined to, and those that it hears.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{CountryCode, Network, Ssid, WifiDeed, WifiNetwork, WifiStatus};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table, for a box with a radio.
pub fn tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::over(network)
        .named("network")
        .tool("wifi_status", Risk::Read, status)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Wireless network")
        .startos("wifi.get", &[])
        .tool("wifi_scan", Risk::Read, scan)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Wireless networks around")
        .startos("wifi.available.get", &[])
        .tool("wifi_connect", Risk::Disrupt, connect)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Join a wireless network")
        .startos("wifi.connect", &[])
        .tool("wifi_forget", Risk::Disrupt, forget)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Forget a wireless network")
        .startos("wifi.remove", &[])
        .tool("wifi_enable", Risk::Disrupt, enable)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Switch the radio")
        .startos("wifi.set-enabled", &[])
}

/// The country, for a box where it can be said.
pub fn country_tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::over(network)
        .named("network")
        .tool("wifi_country", Risk::Write, country)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Country of the radio")
        .startos("wifi.country.set", &[])
}

/// Tells how the host's radio is, which wireless network it is joined to and how well that is heard, which are saved,
/// and for which the owner's file has a password. It fails where `NetworkManager` does not run. `wifi_scan` tells those
/// around.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Status {
    /// Of what is saved, only this network.
    ssid: Option<Ssid>,
}

async fn status(network: Arc<Network>, Status { ssid }: Status, cx: Cx) -> Result<WifiStatus> {
    let status = network.wifi_of(ssid.as_ref(), cx.reference()).await;
    status.map_err(failed)
}

/// Listens for wireless networks, and tells the 64 strongest, with what they ask for; names are what strangers chose.
/// It takes some seconds, and fails where the radio is off. `wifi_connect` joins one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Scan {}

#[derive(Serialize, JsonSchema)]
struct Heard {
    /// The strongest first.
    networks: Vec<WifiNetwork>,
}

async fn scan(network: Arc<Network>, Scan {}: Scan, cx: Cx) -> Result<Heard> {
    let networks = network.wifi_scan(cx.reference()).await.map_err(failed)?;
    Ok(Heard { networks })
}

/// Joins a wireless network that `wifi_scan` tells, for good, and returns how the radio is then. It must be saved, ask
/// for no password, or stand with its password in the owner's `helper.toml` (`wifi_networks`): passwords are no
/// arguments. When it does not let the host in within 30 s, the former network is joined again, and the error says so.
/// This connection may be cut off.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Connect {
    /// Its name, as `wifi_scan` tells it.
    ssid: Ssid,
}

async fn connect(network: Arc<Network>, Connect { ssid }: Connect, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiDeed::Connect { ssid }, &cx).await
}

/// Removes what the host has saved of a wireless network, leaves it if it is joined, and returns how the radio is then.
/// One that is joined is forgotten only while a cable is plugged in. `wifi_connect` joins another one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// Its name, as `wifi_status` tells it.
    ssid: Ssid,
}

async fn forget(network: Arc<Network>, Forget { ssid }: Forget, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiDeed::Forget { ssid }, &cx).await
}

/// Switches the host's radio for wireless networks on or off, for good, and returns how it is then. Off is refused
/// while no cable is plugged in; whoever is connected over it, this client perhaps, is cut off. `wifi_status` shows it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Enable {
    /// Whether it is to be on.
    enabled: bool,
}

async fn enable(network: Arc<Network>, Enable { enabled }: Enable, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiDeed::Enable { enabled }, &cx).await
}

/// Says in which country the host is, whose rules for channels and power its radio keeps to, for good, and returns how
/// the radio is then. It fails for a country that the kernel has no rules for; then nothing is changed. A country on the
/// kernel's command line comes again at the next start. `wifi_scan` hears what is allowed then.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Country {
    /// Two letters, such as `AT`.
    country: CountryCode,
}

async fn country(
    network: Arc<Network>,
    Country { country }: Country,
    cx: Cx,
) -> Result<WifiStatus> {
    change(&network, WifiDeed::Country { country }, &cx).await
}

async fn change(network: &Network, deed: WifiDeed, cx: &Cx) -> Result<WifiStatus> {
    let changed = network.wifi_change(deed, cx.reference()).await;
    changed.map_err(failed)
}
