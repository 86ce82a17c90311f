//! `network_ping`, `network_check_port`, `dns_*`, `firewall_rules`: the network around the host.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    DnsAnswer, Firewall, NameServers, Naming, Network, PingAnswer, PortAnswer,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(network: Arc<Network>, with_firewall: bool) -> Toolset<Network> {
    let set = Toolset::new(network)
        .with_name("network")
        .tool("network_ping", Risk::Scan, ping)
        .about(Scope::Host)
        .titled("Ping a machine")
        .tool("network_check_port", Risk::Scan, check_port)
        .about(Scope::Host)
        .titled("Check a TCP port")
        .startos("net.gateway.check-port", &[("gateway", "host")])
        .tool("dns_query", Risk::Scan, query)
        .about(Scope::Host)
        .titled("Query a name server")
        .startos("net.dns.query", &[("fqdn", "name")])
        .tool("dns_config", Risk::Read, config)
        .about(Scope::Host)
        .titled("DNS configuration")
        .startos("net.dns.dump-table", &[])
        .startos("net.gateway.check-dns", &[("gateway", "interface")])
        .tool("dns_set_static", Risk::Disrupt, set_static)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Set the name servers")
        .startos("net.dns.set-static", &[])
        .syncs_state();
    if !with_firewall {
        return set;
    }
    set.tool("firewall_rules", Risk::Read, firewall)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Firewall rules")
        .startos("net.forward.dump-table", &[])
}

/// Ping a machine from the host (ICMP echo). `network_check_port` tries a TCP connection instead.
///
/// Returns the number of replies and their times. A machine that does not answer may still be up: many drop pings.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ping {
    /// The machine's name or address.
    host: String,
    /// Number of requests, 1 to 10.
    #[serde(default)]
    count: BoundedNumber<1, 10, 3>,
}

async fn ping(network: Arc<Network>, asked: Ping, cx: Cx) -> Result<PingAnswer> {
    let answer = network.ping(&asked.host, asked.count.get(), cx.reference());
    answer.await.map_err(failed)
}

/// Check whether the host can connect to a machine's TCP port: `open`, `refused` (no listener), `no_answer` (off, or
/// dropped by a firewall) or `unreachable`. `network_ping` checks whether the machine answers.
///
/// Sends no data and closes the connection.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckPort {
    /// The machine's name or address.
    host: String,
    /// The port, 1 to 65535.
    #[schemars(range(max = 65_535))]
    port: NonZeroU16,
    /// Timeout for each address in seconds, 1 to 10.
    #[serde(default)]
    timeout_s: BoundedNumber<1, 10, 5>,
}

async fn check_port(network: Arc<Network>, asked: CheckPort, cx: Cx) -> Result<PortAnswer> {
    let wait = asked.timeout_s.seconds();
    let answer = network.check_port(&asked.host, asked.port.get(), wait, cx.reference());
    answer.await.map_err(failed)
}

/// A DNS record type.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum RecordType {
    #[default]
    A,
    Aaaa,
    Caa,
    Cname,
    Https,
    Mx,
    Ns,
    Ptr,
    Soa,
    Srv,
    Svcb,
    Txt,
}

impl RecordType {
    fn word(self) -> String {
        format!("{self:?}").to_ascii_uppercase()
    }
}

/// Query one name server, and return its answer, status and time.
///
/// Default `server`: the host's first, so two calls can compare two servers. Queries the server directly, not
/// `/etc/hosts`, which `dns_config` shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// The full name; for PTR, an address is allowed.
    name: String,
    /// The record type.
    #[serde(default, rename = "type")]
    kind: RecordType,
    /// The name server's address.
    server: Option<String>,
}

async fn query(network: Arc<Network>, asked: Query, cx: Cx) -> Result<DnsAnswer> {
    let server: Option<IpAddr> = match asked.server.as_deref().map(str::parse).transpose() {
        Ok(server) => server,
        Err(_) => {
            return Err(
                ToolError::new("`server` must be an address, such as 192.168.1.1")
                    .hint("Nothing was done.")
                    .into(),
            );
        }
    };
    let kind = asked.kind.word();
    let answer = network.query(&asked.name, &kind, server, cx.reference());
    answer.await.map_err(failed)
}

/// Show how the host resolves names: name servers, search domains, who sets them, those of each interface (only with
/// systemd-resolved), and the content of `/etc/hosts`. `dns_query` queries one of the servers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Config {
    /// In `links`, only this interface.
    interface: Option<String>,
}

async fn config(network: Arc<Network>, Config { interface }: Config, _: Cx) -> Result<Naming> {
    match interface {
        Some(interface) => network.naming_of(&interface).await.map_err(failed),
        None => Ok(network.naming().await),
    }
}

/// Set the host's name servers permanently; without any, the network sets them again.
///
/// Returns the same as `dns_config`. Fails if none answers, or if a program such as dhclient writes `/etc/resolv.conf`.
/// If the host then gets no answer through them, the old ones are restored, and the error says so.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetStatic {
    /// Addresses, in query order; none if absent, null or empty.
    servers: Option<NameServers>,
}

async fn set_static(
    network: Arc<Network>,
    SetStatic { servers }: SetStatic,
    cx: Cx,
) -> Result<Naming> {
    let servers = servers.unwrap_or_default();
    let set = network.set_servers(servers, cx.reference()).await;
    set.map_err(failed)
}

/// Show the host's firewall rules as data, with tables and chains, as nftables reports them. `network_listeners` shows
/// the open ports behind it.
///
/// Long lists continue at `next_offset`. Includes rules made with iptables-nft, not those of iptables-legacy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// Only rules of tables with this name.
    table: Option<String>,
    /// Rules to skip: `next_offset` of the previous answer.
    #[serde(default)]
    offset: u32,
}

async fn firewall(network: Arc<Network>, asked: Rules, cx: Cx) -> Result<Firewall> {
    let offset = asked.offset as usize;
    let rules = network.firewall(asked.table.as_deref(), offset, cx.reference());
    rules.await.map_err(failed)
}
