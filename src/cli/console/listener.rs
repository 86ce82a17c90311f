//! The listener of a gatewren on this host, and requests to it like a client's: over TLS, under a name or an
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use hyper::Request;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::units::{UnitState, systemd_runs};
use gatewren_base::config::{Settings, TlsMode};
use gatewren_base::sys::{LockHolder, Secret, host_name};
use gatewren_gate::http::{
    AllowedServers, HttpClient, HttpClientError, ServerVerification, bearer,
};

/// The maximum size of a response, in bytes.
const MOST: usize = 1 << 20;

/// A path that every setting leaves open to anyone; the owner may move the health check.
const PUBLIC_PATH: &str = "/.well-known/mcp";

/// How to reach the server.
pub struct LocalServer {
    /// Its port.
    pub port: u16,
    /// The address that a client on this host connects to.
    pub near: SocketAddr,
    /// Whether only this host can connect.
    pub is_local: bool,
    /// The file with our own authority; `None` if another authority signs.
    pub authority: Option<PathBuf>,
}

impl LocalServer {
    /// Finds the listener: the given address, else the one of systemd's socket, else the one of the settings.
    pub async fn of(settings: &Settings, given: Option<SocketAddr>, of_systemd: bool) -> Self {
        let listens = match given {
            Some(address) => address,
            None => listens(settings, of_systemd).await,
        };
        let own = settings.tls.mode == TlsMode::Own;
        Self {
            port: listens.port(),
            near: reachable_address(listens),
            is_local: listens.ip().is_loopback(),
            authority: own.then(|| settings.state_dir.join("tls/ca.pem")),
        }
    }

    /// The URL of a path, with the first name of this host that other machines can resolve.
    pub fn url(&self, settings: &Settings, path: &str) -> String {
        // If the server listens on loopback only, other machines cannot reach it, and its host name is no use.
        let found = || (!self.is_local).then(host_name).flatten();
        let name = settings.names.first().cloned().or_else(found);
        let name = name.unwrap_or_else(|| "localhost".to_owned());
        format!("https://{name}:{}{path}", self.port)
    }

    /// Checks that the server answers at an address under a name, with a certificate that is valid for it.
    pub async fn probe(&self, at: IpAddr, name: &str) -> Result<(), HttpClientError> {
        let client = self.client(&format!("https://{name}:{}{PUBLIC_PATH}", self.port), at)?;
        client.ask(Request::default(), Some(MOST)).await.map(drop)
    }

    /// Calls a tool without arguments, with an agent's token; returns the result.
    pub async fn call(&self, at: IpAddr, token: &Secret, tool: &str) -> Result<Value, String> {
        let url = format!("https://{}:{}/mcp", in_url(at), self.port);
        let client = self.client(&url, at).map_err(words)?;
        let bearer = bearer(token).ok_or("the token is not a valid header value")?;
        let request = Request::post("/")
            .header(AUTHORIZATION, bearer)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(call_of(tool).to_string().into());
        let answered = client.ask(request.map_err(words)?, Some(MOST)).await;
        let answered = answered.map_err(words)?;
        let message: Value = serde_json::from_slice(&answered.body).map_err(words)?;
        match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("unexpected response {message}")),
        }
    }

    fn client(&self, url: &str, at: IpAddr) -> Result<HttpClient, HttpClientError> {
        let verification = match self.authority.clone() {
            Some(file) => ServerVerification::Authority(file),
            None => ServerVerification::Machine,
        };
        let servers = AllowedServers::At(SocketAddr::new(at, self.port));
        HttpClient::new(url, servers, &verification)
    }
}

fn call_of(tool: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": tool, "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

fn words(cause: impl std::fmt::Display) -> String {
    cause.to_string()
}

/// An address as written in a URL (RFC 3986, 3.2.2).
pub fn in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

async fn listens(settings: &Settings, of_systemd: bool) -> SocketAddr {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8443));
    let set = settings.listen.first().copied().unwrap_or(any);
    // First what the running server has recorded itself, if this user may read it.
    if let Some(address) = LockHolder::of(&settings.state_dir).and_then(|holder| holder.address) {
        return address;
    }
    if !of_systemd || !systemd_runs() {
        return set;
    }
    let unit = UnitState::of("gatewren.socket").await.unwrap_or_default();
    match unit.ports().first() {
        Some(port) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), *port),
        None => set,
    }
}

/// The address at which this host reaches a listener.
fn reachable_address(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port())
}
