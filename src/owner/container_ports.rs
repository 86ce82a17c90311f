//! The open ports of a container, as links where a browser can open them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use maud::{Markup, html};
use serde_json::Value;

use super::container_texts as texts;
use super::parts::name;

/// The ports of HTTPS by habit; others are opened with HTTP.
const TLS_PORTS: [u64; 3] = [443, 8006, 8443];

/// A port as it is shown.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ShownPort {
    port: u64,
    protocol: String,
    /// The host of its link; `None` if a browser cannot open it.
    host: Option<String>,
}

/// Renders the ports from the entry in the state; `server` is how the reader reaches the host.
pub fn ports_section(entry: &Value, server: &str) -> Markup {
    let ports = shown_ports(entry, server);
    html! {
        @if !ports.is_empty() {
            section {
                h2 { (texts::PORTS) }
                ul {
                    @for one in &ports { li {
                        @let words = format!("{} {}", one.protocol, one.port);
                        @if let Some(host) = &one.host {
                            @let scheme = if TLS_PORTS.contains(&one.port) { "https" } else { "http" };
                            a href=(format!("{scheme}://{host}:{}/", one.port)) rel="noreferrer noopener" { (name(&words)) }
                        } @else { (name(&words)) " " span class="soft" { (texts::INSIDE_ONLY) } }
                    } }
                }
            }
        }
    }
}

/// The published ports of an engine, which are the host's, and the others of the container itself.
fn shown_ports(entry: &Value, server: &str) -> BTreeSet<ShownPort> {
    let list = |place: &str| {
        let list = entry.pointer(place).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let address = list("/addresses").find_map(|one| one.as_str()?.parse::<IpAddr>().ok());
    let shown = |one: &Value, port: &str, bound: &str, host: Option<String>| {
        let protocol = one.get("protocol")?.as_str()?.to_owned();
        let bound: Option<IpAddr> = one
            .get(bound)
            .and_then(|bound| bound.as_str()?.parse().ok());
        let is_open = protocol == "tcp" && !bound.is_some_and(|bound| bound.is_loopback());
        Some(ShownPort {
            port: one.get(port)?.as_u64()?,
            protocol,
            host: host.filter(|_| is_open),
        })
    };
    let of_host = Some(host_name(server).to_owned());
    let published = list("/engine/published_ports")
        .filter_map(|one| shown(one, "host_port", "host_address", of_host.clone()));
    let inside =
        list("/ports").filter_map(|one| shown(one, "port", "address", address.map(host_of)));
    published.chain(inside).collect()
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The host of `server` without its port.
fn host_name(server: &str) -> &str {
    match server.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_port_that_a_browser_can_open_is_a_link() {
        let entry = json!({
            "addresses": ["10.0.3.5"],
            "ports": [
                { "protocol": "tcp", "port": 80, "address": "0.0.0.0" },
                { "protocol": "tcp", "port": 5432, "address": "127.0.0.1" },
                { "protocol": "udp", "port": 53, "address": "0.0.0.0" }
            ],
            "engine": { "published_ports": [{ "protocol": "tcp", "host_port": 8443, "container_port": 443 }] }
        });
        let page = ports_section(&entry, "box.lan:8443").into_string();
        for part in [
            "http://10.0.3.5:80/",
            "https://box.lan:8443/",
            "udp 53",
            "tcp 5432",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("<a ").count(), 2, "{page}");
        assert_eq!(ports_section(&json!({}), "box").into_string(), "");
    }
}
