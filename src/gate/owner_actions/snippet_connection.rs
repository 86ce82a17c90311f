//! What a snippet is made for: the address, the token and the authority, and how they are quoted.

use std::net::{IpAddr, SocketAddr};

use super::clients::SnippetFormat;
use gatewren_base::sys::{host_name, sanitize};

/// The default path of the authority's file on a client's machine.
pub const AUTHORITY_FILE: &str = "$HOME/gatewren-ca.pem";

/// The placeholder for the home directory in texts that no shell expands.
pub(super) const HOME: &str = "/PATH/TO";

/// The connection data for a snippet.
#[derive(Debug, Clone, Copy)]
pub struct SnippetConnection<'a> {
    /// The MCP endpoint, such as `https://box.lan:8443/mcp`.
    pub url: &'a str,
    /// A name of the server that its certificate covers, for clients that cannot connect by address.
    pub name: Option<&'a str>,
    /// The agent's token; without it, each client gets the token from its own source.
    pub token: Option<&'a str>,
    /// The path of gatewren's authority file on the client's machine; `None` if a public authority issued the
    /// certificate.
    pub authority: Option<&'a str>,
    /// The fingerprint of that file, if it is known.
    pub fingerprint: Option<&'a str>,
    /// The path of that file on the server, with which the client's copy is compared if the fingerprint is not known.
    pub authority_on_server: &'a str,
    /// The agent's name, for clients that show one.
    pub agent: Option<&'a str>,
}

impl SnippetConnection<'_> {
    /// The host of the endpoint, with its port.
    pub(super) fn host(&self) -> &str {
        let rest = self.url.trim_start_matches("https://");
        rest.split('/').next().unwrap_or(rest)
    }

    /// The address in the endpoint; `None` if it has a name.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let host = self.host();
        let with_default_port = || Some(SocketAddr::new(host.parse().ok()?, 443));
        host.parse().ok().or_else(with_default_port)
    }

    /// The endpoint by the server's name instead of its address; `None` if it has no address or no name is known.
    pub(super) fn url_by_name(&self) -> Option<String> {
        let (address, name) = (self.address()?, self.name?);
        Some(format!("https://{name}:{}/mcp", address.port()))
    }
}

/// A name of the server that its certificate covers and that a client on another machine can use: the first configured
/// one, and without one the host's. `None` if only addresses are configured.
pub fn name_for_clients(configured: &[String]) -> Option<String> {
    if configured.is_empty() {
        let host = host_name()?.to_ascii_lowercase();
        return host.split('.').next().map(str::to_owned);
    }
    let is_name = |name: &&String| *name != "localhost" && name.parse::<IpAddr>().is_err();
    configured.iter().find(is_name).cloned()
}

/// Formats a path for the text.
pub(super) fn path(form: SnippetFormat, file: &str) -> String {
    match form {
        // The default path, whose variable the shell has to expand.
        SnippetFormat::Shell if file == AUTHORITY_FILE => format!("\"{file}\""),
        SnippetFormat::Shell => format!("'{}'", file.replace('\'', r"'\''")),
        _ => inside(form, &file.replace("$HOME", HOME)),
    }
}

/// Escapes untrusted text for use inside the quotes of a snippet.
pub(super) fn inside(form: SnippetFormat, text: &str) -> String {
    if form != SnippetFormat::Json {
        return sanitize(text);
    }
    let quoted = serde_json::Value::from(text).to_string();
    let bare = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    bare.unwrap_or_default().to_owned()
}
