//! `wifi_*`: the host's Wi-Fi connection, and the networks in range.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use gatewren_host::backends::{CountryCode, Network, Ssid, WifiAction, WifiNetwork, WifiStatus};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset for hosts with a Wi-Fi radio.
pub fn tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::new(network)
        .with_name("network")
        .tool("wifi_status", Risk::Read, status)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Wi-Fi status")
        .startos("wifi.get", &[])
        .tool("wifi_scan", Risk::Read, scan)
        .reaches_other_machines()
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Scan for Wi-Fi networks")
        .startos("wifi.available.get", &[])
        .tool("wifi_connect", Risk::Disrupt, connect)
        .reaches_other_machines()
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Connect to a Wi-Fi network")
        .startos("wifi.connect", &[])
        .tool("wifi_forget", Risk::Disrupt, forget)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Forget a Wi-Fi network")
        .startos("wifi.remove", &[])
        .tool("wifi_enable", Risk::Disrupt, enable)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Turn Wi-Fi on or off")
        .startos("wifi.set-enabled", &[])
}

/// The toolset for hosts where the country can be set.
pub fn country_tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::new(network)
        .with_name("network")
        .tool("wifi_country", Risk::Write, country)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Set the Wi-Fi country")
        .startos("wifi.country.set", &[])
}

/// Show the host's Wi-Fi radio, the connected network and its signal, the saved networks, and those with a password in
/// the owner's file. `wifi_scan` lists networks in range.
///
/// Fails if `NetworkManager` does not run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Status {
    /// Only this saved network.
    ssid: Option<Ssid>,
}

async fn status(network: Arc<Network>, Status { ssid }: Status, cx: Cx) -> Result<WifiStatus> {
    let status = network.wifi_of(ssid.as_ref(), cx.reference()).await;
    status.map_err(failed)
}

/// Scan for Wi-Fi networks, and list the 64 strongest with their security. `wifi_connect` connects to one.
///
/// Names are chosen by strangers. Takes some seconds; fails if the radio is off.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Scan {}

#[derive(Serialize, JsonSchema)]
struct ScannedNetworks {
    /// Strongest first.
    networks: Vec<WifiNetwork>,
}

async fn scan(network: Arc<Network>, Scan {}: Scan, cx: Cx) -> Result<ScannedNetworks> {
    let networks = network.wifi_scan(cx.reference()).await.map_err(failed)?;
    Ok(ScannedNetworks { networks })
}

/// Connect permanently to a Wi-Fi network from `wifi_scan`, and return the status. It must be saved, open, or in
/// `wifi_networks` of the owner's `helper.toml`. If the host is not connected within 30 s, the previous network is
/// restored, and the call fails. This connection may be cut.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Connect {
    /// The name, as in `wifi_scan`.
    ///
    /// The password is not an argument: the owner writes it into a file that
    /// `wifi_networks` names.
    ssid: Ssid,
}

async fn connect(network: Arc<Network>, Connect { ssid }: Connect, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiAction::Connect { ssid }, &cx).await
}

/// Forget a saved Wi-Fi network, disconnect from it if connected, and return the status. `wifi_connect` connects to
/// another.
///
/// The connected network can only be forgotten while a cable is plugged in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// The name, as in `wifi_status`.
    ssid: Ssid,
}

async fn forget(network: Arc<Network>, Forget { ssid }: Forget, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiAction::Forget { ssid }, &cx).await
}

/// Turn the host's Wi-Fi radio on or off, permanently, and return the status. Clients on Wi-Fi, perhaps this one, are
/// disconnected. `wifi_status` shows it.
///
/// Turning it off fails while no cable is plugged in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Enable {
    /// Turn it on or off.
    enabled: bool,
}

async fn enable(network: Arc<Network>, Enable { enabled }: Enable, cx: Cx) -> Result<WifiStatus> {
    change(&network, WifiAction::Enable { enabled }, &cx).await
}

/// Set the Wi-Fi country, which defines the allowed channels and power, permanently, and return the status. `wifi_scan`
/// then lists what is allowed.
///
/// Fails without a change if the kernel has no rules for the country. A country on the kernel command line returns at
/// the next boot.
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
    change(&network, WifiAction::Country { country }, &cx).await
}

async fn change(network: &Network, action: WifiAction, cx: &Cx) -> Result<WifiStatus> {
    let changed = network.wifi_change(action, cx.reference()).await;
    changed.map_err(failed)
}
