//! What to paste into a client so that it comes in here with a token.

/// What a client is to be told.
pub struct Way<'a> {
    /// Where MCP is, such as `https://box.lan:8443/mcp`.
    pub url: &'a str,
    /// The agent's token.
    pub token: &'a str,
    /// Where the file with our authority is, on the client's own machine; not told where others vouch for us.
    pub authority: Option<&'a str>,
}

/// A client and what it wants to be told.
pub struct Snippet {
    /// The word for it on the command line.
    pub client: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Where the text goes, in words.
    pub place: String,
    /// The text.
    pub text: String,
}

/// A client: its word, its title, where the text goes, the text, and the variable by which it is told of an authority.
type Client = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

/// `{url}`, `{token}` and `{ca}` are filled in. The forms are those of the clients' own manuals.
#[rustfmt::skip]
const CLIENTS: [Client; 12] = [
    ("claude-code", "Claude Code", "a terminal",
     "claude mcp add --transport http --scope user gatewren {url} --header \"Authorization: Bearer {token}\"",
     Some("NODE_EXTRA_CA_CERTS")),
    ("claude-desktop", "Claude Desktop", "claude_desktop_config.json",
     "{\"mcpServers\":{\"gatewren\":{\"command\":\"npx\",\"args\":[\"-y\",\"mcp-remote\",\"{url}\",\"--transport\",\"http-only\",\"--header\",\"Authorization:${AUTH}\"],\"env\":{\"AUTH\":\"Bearer {token}\",\"NODE_EXTRA_CA_CERTS\":\"{ca}\"}}}}",
     None),
    ("cursor", "Cursor", "~/.cursor/mcp.json",
     "{\"mcpServers\":{\"gatewren\":{\"url\":\"{url}\",\"headers\":{\"Authorization\":\"Bearer {token}\"}}}}",
     Some("NODE_EXTRA_CA_CERTS")),
    ("vscode", "VS Code", ".vscode/mcp.json; it asks for the token",
     "{\"inputs\":[{\"type\":\"promptString\",\"id\":\"gatewren\",\"description\":\"token of gatewren\",\"password\":true}],\"servers\":{\"gatewren\":{\"type\":\"http\",\"url\":\"{url}\",\"headers\":{\"Authorization\":\"Bearer ${input:gatewren}\"}}}}",
     None),
    ("codex", "Codex", "~/.codex/config.toml, with GATEWREN_TOKEN={token} in its environment",
     "[mcp_servers.gatewren]\nurl = \"{url}\"\nbearer_token_env_var = \"GATEWREN_TOKEN\"\ntool_timeout_sec = 300",
     Some("CODEX_CA_CERTIFICATE")),
    ("gemini", "Gemini CLI", "a terminal",
     "gemini mcp add -s user --transport http --header \"Authorization: Bearer {token}\" gatewren {url}",
     Some("NODE_EXTRA_CA_CERTS")),
    ("librechat", "LibreChat", "librechat.yaml",
     "mcpServers:\n  gatewren:\n    type: streamable-http\n    url: \"{url}\"\n    headers: {Authorization: \"Bearer {token}\"}\n    timeout: 300000\n    serverInstructions: true",
     Some("NODE_EXTRA_CA_CERTS")),
    ("open-webui", "Open WebUI", "Admin panel, External tools, MCP (Streamable HTTP)",
     "URL: {url}\nAuth: Bearer\nKey: {token}",
     Some("SSL_CERT_FILE")),
    ("n8n", "n8n", "the MCP Client Tool node: HTTP Streamable, with a Bearer credential",
     "Endpoint: {url}\nToken: {token}",
     Some("NODE_EXTRA_CA_CERTS")),
    ("mcp-remote", "mcp-remote", "a terminal",
     "npx -y mcp-remote {url} --transport http-only --header \"Authorization:Bearer {token}\"",
     Some("NODE_EXTRA_CA_CERTS")),
    ("fastmcp", "FastMCP", "Python",
     "from fastmcp import Client\nfrom fastmcp.client.transports import StreamableHttpTransport\nclient = Client(StreamableHttpTransport(\"{url}\", headers={\"Authorization\": \"Bearer {token}\"}))",
     Some("SSL_CERT_FILE")),
    ("curl", "curl", "a terminal",
     "curl --cacert {ca} -H \"Authorization: Bearer {token}\" -H \"Content-Type: application/json\" -H \"Accept: application/json, text/event-stream\" -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"curl\",\"version\":\"1\"}}}' {url}",
     None),
];

/// What to tell each client.
pub fn snippets(way: &Way<'_>) -> Vec<Snippet> {
    CLIENTS.iter().map(|client| snippet(way, client)).collect()
}

fn snippet(way: &Way<'_>, (client, title, place, text, variable): &Client) -> Snippet {
    let text = match way.authority {
        Some(file) => text.replace("{ca}", file),
        // Where others vouch for us, nothing is said of an authority.
        None => text
            .replace(",\"NODE_EXTRA_CA_CERTS\":\"{ca}\"", "")
            .replace("--cacert {ca} ", ""),
    };
    let text = text.replace("{url}", way.url).replace("{token}", way.token);
    let told = way.authority.zip(*variable);
    let text = match told {
        Some((file, variable)) => format!("{}\n{text}", set(variable, file, client)),
        None => text,
    };
    Snippet {
        client,
        title,
        place: place.replace("{token}", way.token),
        text,
    }
}

/// How a client is told of the authority, before it is started.
fn set(variable: &str, file: &str, client: &str) -> String {
    match client {
        "claude-code" | "gemini" | "mcp-remote" | "curl" => format!("export {variable}={file}"),
        _ => format!("# with {variable}={file} in its environment"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_told_where_and_who_and_nothing_is_left_open() {
        for authority in [None, Some("/home/me/gatewren-ca.pem")] {
            let way = Way {
                url: "https://box.lan:8443/mcp",
                token: "gw_x",
                authority,
            };
            for Snippet {
                client,
                text,
                place,
                ..
            } in snippets(&way)
            {
                let all = format!("{text}{place}");
                assert!(all.contains("https://box.lan:8443/mcp"), "{client}");
                for open in ["{url}", "{ca}"] {
                    assert!(!all.contains(open), "{client}: {all}");
                }
                if let Some(json) = text.lines().last().filter(|line| line.starts_with('{')) {
                    assert!(
                        serde_json::from_str::<serde_json::Value>(json).is_ok(),
                        "{client}"
                    );
                }
            }
        }
    }
}
