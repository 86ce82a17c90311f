//! `network_ping`, `network_check_port`, `dns_*`, `firewall_rules`: the network around the host.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{failure::failed, number::Number};
use crate::backends::{DnsAnswer, Firewall, NameServers, Naming, Network, PingAnswer, PortAnswer};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The group, as a table.
pub fn tools(network: Arc<Network>, with_firewall: bool) -> Toolset<Network> {
    let set = Toolset::over(network)
        .named("network")
        .tool("network_ping", Risk::Scan, ping)
        .about(Scope::Host)
        .titled("Ping a machine")
        .tool("network_check_port", Risk::Scan, check_port)
        .about(Scope::Host)
        .titled("Check a port of a machine")
        .startos("net.gateway.check-port", &[("gateway", "host")])
        .tool("dns_query", Risk::Scan, query)
        .about(Scope::Host)
        .titled("Ask a name server")
        .startos("net.dns.query", &[("fqdn", "name")])
        .tool("dns_config", Risk::Read, config)
        .about(Scope::Host)
        .titled("How names are looked up")
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
        .titled("Rules of the firewall")
        .startos("net.forward.dump-table", &[])
}

/// Sends echo requests from the host to a machine, and tells how many were answered and how long that took. A machine
/// that does not answer may still be there: many drop these. `network_check_port` tries a connection instead.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ping {
    /// The machine's name or address.
    host: String,
    /// How many requests to send, 1 to 10.
    #[serde(default)]
    count: Number<1, 10, 3>,
}

async fn ping(network: Arc<Network>, asked: Ping, cx: Cx) -> Result<PingAnswer> {
    let answer = network.ping(&asked.host, asked.count.get(), cx.reference());
    answer.await.map_err(failed)
}

/// Tries to open a TCP connection from the host to one port of a machine, and closes it again: `open`, `refused`
/// (nobody listens there), `no_answer` (off, or dropped by a firewall) or `unreachable`. Nothing is sent over it.
/// `network_ping` asks whether the machine answers at all.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckPort {
    /// The machine's name or address.
    host: String,
    /// The port, 1 to 65535.
    #[schemars(range(max = 65_535))]
    port: NonZeroU16,
    /// Seconds to wait for each of its addresses, 1 to 10.
    #[serde(default)]
    timeout_s: Number<1, 10, 5>,
}

async fn check_port(network: Arc<Network>, asked: CheckPort, cx: Cx) -> Result<PortAnswer> {
    let wait = asked.timeout_s.seconds();
    let answer = network.check_port((&asked.host, asked.port.get()), wait, cx.reference());
    answer.await.map_err(failed)
}

/// A type of record.
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

/// Asks one name server one question, and tells its answer, status and time. Without `server` it is the first that the
/// host asks itself, so that two calls show whether two servers agree. It goes straight to the server: `/etc/hosts` is
/// not looked at, which `dns_config` shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// The full name; with the type PTR, an address may stand here.
    name: String,
    /// The type of the records.
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
    let question = (asked.name.as_str(), asked.kind.word());
    let answer = network.query((question.0, &question.1), server, cx.reference());
    answer.await.map_err(failed)
}

/// Tells how the host turns names into addresses: the name servers and search domains, who sets them, those of each
/// interface where systemd-resolved runs, and what `/etc/hosts` says. `dns_query` asks one of the servers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Of `links`, only that of this interface.
    interface: Option<String>,
}

async fn config(network: Arc<Network>, Config { interface }: Config, _: Cx) -> Result<Naming> {
    match interface {
        Some(interface) => network.naming_of(&interface).await.map_err(failed),
        None => Ok(network.naming().await),
    }
}

/// Sets the name servers that the host asks, for good, or with none lets the network say them again, and returns what
/// `dns_config` tells then. It fails when none of them answers; when the host gets no answer through them the former
/// ones are put back, and the error says so. It fails, too, where a program like dhclient writes `/etc/resolv.conf`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetStatic {
    /// Addresses, in the order in which they are asked; none when absent, null or empty.
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

/// Tells the rules of the host's firewall as data, with tables and chains, as nftables has them; rules that were made
/// with iptables-nft are among them, those of iptables-legacy are left out. Many rules come in parts: go on at
/// `next_offset`. `network_listeners` tells which ports are open behind it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// Only those of the tables of this name.
    table: Option<String>,
    /// How many rules to pass over: `next_offset` of the answer before.
    #[serde(default)]
    offset: u32,
}

async fn firewall(network: Arc<Network>, asked: Rules, cx: Cx) -> Result<Firewall> {
    let offset = asked.offset as usize;
    let told = network.firewall(asked.table.as_deref(), offset, cx.reference());
    told.await.map_err(failed)
}
