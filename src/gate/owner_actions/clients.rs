//! The supported clients and their configuration snippets.

/// The format of a snippet, which determines how values are quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnippetFormat {
    /// Lines for a POSIX shell.
    Shell,
    /// A JSON file.
    Json,
    /// A part of a TOML file.
    Toml,
    /// A part of a YAML file.
    Yaml,
    /// A Python program.
    Python,
    /// Fields of a form to fill in.
    Fields,
}

impl SnippetFormat {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Json => "json",
            Self::Toml => "toml",
            Self::Yaml => "yaml",
            Self::Python => "python",
            Self::Fields => "fields",
        }
    }
}

/// Where a client gets the token from if it is not in the snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// From the variable `GATEWREN_TOKEN`, which is read when the snippet is used. The snippet gets these
    /// replacements, as pairs.
    Variable(&'static [(&'static str, &'static str)]),
    /// Only from the variable: such a client accepts no token in its settings.
    OnlyVariable,
    /// The client prompts for it.
    Asks,
    /// From the snippet: the user puts the token in place of this text.
    Paste(&'static str),
}

/// A client in its current version.
pub(super) struct ClientProfile {
    /// Its name on the command line.
    pub(super) word: &'static str,
    pub(super) title: &'static str,
    /// Where the snippet goes, in words.
    pub(super) place: &'static str,
    pub(super) form: SnippetFormat,
    /// The snippet, with the placeholders `{url}`, `{host}` (with the port), `{token}`, `{ca}` and `{who}`.
    pub(super) text: &'static str,
    /// The part of it to omit if the certificate is from a public authority.
    pub(super) authority_part: &'static str,
    pub(super) source: TokenSource,
    /// The variable that makes it trust an authority, if that is not in the snippet.
    pub(super) variable: Option<&'static str>,
    /// Whether it can connect only by name when gatewren's own authority issued the certificate: `BoringSSL` does not
    /// support name constraints for addresses.
    pub(super) by_name: bool,
    /// Other facts to know.
    pub(super) hint: &'static str,
}

const SHELL: TokenSource = TokenSource::Variable(&[("{token}", "$GATEWREN_TOKEN")]);
const BRACES: TokenSource = TokenSource::Variable(&[("{token}", "${GATEWREN_TOKEN}")]);

/// The formats are those of the clients' manuals. tests/clients/config runs those that can be run.
pub(super) const CLIENTS: [ClientProfile; 12] = [
    ClientProfile {
        word: "claude-code",
        title: "Claude Code",
        place: "a terminal",
        form: SnippetFormat::Shell,
        // --header takes all following words, so it is the last option.
        text: "claude mcp add --transport http --scope user gatewren {url} --header \"Authorization: Bearer {token}\"",
        authority_part: "",
        source: SHELL,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: true,
        hint: "",
    },
    ClientProfile {
        word: "claude-desktop",
        title: "Claude Desktop",
        place: "claude_desktop_config.json (Settings, Developer, Edit config)",
        form: SnippetFormat::Json,
        // On Windows, a blank after the header's colon would split the argument.
        text: r#"{
  "mcpServers": {
    "gatewren": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "{url}", "--transport", "http-only", "--header", "Authorization:${AUTH}"],
      "env": {
        "AUTH": "Bearer {token}",
        "NODE_EXTRA_CA_CERTS": "{ca}"
      }
    }
  }
}"#,
        authority_part: ",\n        \"NODE_EXTRA_CA_CERTS\": \"{ca}\"",
        source: TokenSource::Paste("GATEWREN_TOKEN"),
        variable: None,
        by_name: false,
        hint: "Claude Desktop starts mcp-remote with npx, so Node.js must be installed on its machine.",
    },
    ClientProfile {
        word: "cursor",
        title: "Cursor",
        place: "~/.cursor/mcp.json",
        form: SnippetFormat::Json,
        text: r#"{
  "mcpServers": {
    "gatewren": {
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" }
    }
  }
}"#,
        authority_part: "",
        source: TokenSource::Variable(&[("{token}", "${env:GATEWREN_TOKEN}")]),
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "vscode",
        title: "VS Code",
        place: ".vscode/mcp.json, or the file that \"MCP: Open User Configuration\" opens",
        form: SnippetFormat::Json,
        text: r#"{
  "inputs": [
    { "type": "promptString", "id": "gatewren", "description": "Token of {who}", "password": true }
  ],
  "servers": {
    "gatewren": {
      "type": "http",
      "url": "{url}",
      "headers": { "Authorization": "Bearer ${input:gatewren}" }
    }
  }
}"#,
        authority_part: "",
        source: TokenSource::Asks,
        variable: None,
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "codex",
        title: "Codex",
        place: "~/.codex/config.toml",
        form: SnippetFormat::Toml,
        text: "[mcp_servers.gatewren]\nurl = \"{url}\"\nbearer_token_env_var = \"GATEWREN_TOKEN\"\ntool_timeout_sec = 300",
        authority_part: "",
        source: TokenSource::OnlyVariable,
        variable: Some("CODEX_CA_CERTIFICATE"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "gemini",
        title: "Gemini CLI",
        place: "a terminal",
        form: SnippetFormat::Shell,
        text: "gemini mcp add --scope user --transport http --header \"Authorization: Bearer {token}\" gatewren {url}",
        authority_part: "",
        source: SHELL,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "librechat",
        title: "LibreChat",
        place: "librechat.yaml",
        form: SnippetFormat::Yaml,
        text: r#"mcpServers:
  gatewren:
    type: streamable-http
    url: "{url}"
    headers:
      Authorization: "Bearer {token}"
    timeout: 300000
    serverInstructions: true
mcpSettings:
  allowedAddresses:
    - "{host}""#,
        authority_part: "",
        source: BRACES,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "Without mcpSettings.allowedAddresses, LibreChat does not connect to private networks.",
    },
    ClientProfile {
        word: "open-webui",
        title: "Open WebUI",
        place: "Admin panel, Settings, External tools, add a connection",
        form: SnippetFormat::Fields,
        text: "Type: MCP (Streamable HTTP)\nURL: {url}\nAuth: Bearer\nKey: {token}\nID: gatewren\nName: {who}",
        authority_part: "",
        source: TokenSource::Paste("(the token)"),
        variable: Some("SSL_CERT_FILE"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "n8n",
        title: "n8n",
        place: "the MCP Client Tool node, with a credential of type Bearer Auth",
        form: SnippetFormat::Fields,
        text: "Endpoint: {url}\nServer Transport: HTTP Streamable\nAuthentication: Bearer Auth\n\
            Name of the credential: {who}\nBearer Token: {token}",
        authority_part: "",
        source: TokenSource::Paste("(the token)"),
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "mcp-remote",
        title: "mcp-remote",
        place: "a terminal, or any client that starts stdio servers",
        form: SnippetFormat::Shell,
        // The quotes prevent expansion by the shell: mcp-remote itself inserts the variable, so no process list shows
        // the token.
        text: "npx -y mcp-remote {url} --transport http-only --header 'Authorization:Bearer {token}'",
        authority_part: "",
        source: BRACES,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "fastmcp",
        title: "FastMCP",
        place: "a Python program",
        form: SnippetFormat::Python,
        text: r#"import asyncio

from fastmcp import Client

client = Client("{url}", auth="{token}")


async def main():
    async with client:
        for tool in await client.list_tools():
            print(tool.name)


asyncio.run(main())"#,
        authority_part: "",
        source: TokenSource::Variable(&[
            ("import asyncio\n", "import asyncio\nimport os\n"),
            ("\"{token}\"", "os.environ[\"GATEWREN_TOKEN\"]"),
        ]),
        variable: Some("SSL_CERT_FILE"),
        by_name: false,
        hint: "",
    },
    ClientProfile {
        word: "curl",
        title: "curl",
        place: "a terminal",
        form: SnippetFormat::Shell,
        text: "curl --cacert {ca} {url} \\\n  \
            -H \"Authorization: Bearer {token}\" \\\n  \
            -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\\n  \
            -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\\n  \
            -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\
            \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
            \"io.modelcontextprotocol/clientCapabilities\":{}}}}'",
        authority_part: "--cacert {ca} ",
        source: SHELL,
        variable: None,
        by_name: false,
        hint: "",
    },
];
