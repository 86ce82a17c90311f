//! The clients, and what each is told in its own form.

/// What a text is, so that it is quoted as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines for a POSIX shell.
    Shell,
    /// A file of JSON.
    Json,
    /// A part of a TOML file.
    Toml,
    /// A part of a YAML file.
    Yaml,
    /// A Python program.
    Python,
    /// Fields of a form that somebody fills in.
    Fields,
}

impl Form {
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

/// Where a client takes a token from that is not written into its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The variable `GATEWREN_TOKEN`, which is read when the text is used; its text has these instead, pair by pair.
    Variable(&'static [(&'static str, &'static str)]),
    /// The same, and the text has never another: such a client takes no token in its settings.
    OnlyVariable,
    /// It asks for it.
    Asks,
    /// It has neither: whoever pastes puts the token in the place of this.
    Paste(&'static str),
}

/// A client as it is today.
pub(super) struct Client {
    /// The word for it on the command line.
    pub(super) word: &'static str,
    pub(super) title: &'static str,
    /// Where the text goes, in words.
    pub(super) place: &'static str,
    pub(super) form: Form,
    /// The text, with `{url}`, `{host}` (with the port), `{token}`, `{ca}` and `{who}` open.
    pub(super) text: &'static str,
    /// What is left out of it where others vouch for us.
    pub(super) authority_part: &'static str,
    pub(super) source: Source,
    /// The variable by which it is told of an authority, where the text does not say it.
    pub(super) variable: Option<&'static str>,
    /// Whether it comes in by a name alone where the authority is our own: `BoringSSL` knows no bounds of addresses.
    pub(super) by_name: bool,
    /// What else there is to know.
    pub(super) hint: &'static str,
}

const SHELL: Source = Source::Variable(&[("{token}", "$GATEWREN_TOKEN")]);
const BRACES: Source = Source::Variable(&[("{token}", "${GATEWREN_TOKEN}")]);

/// The forms are those of the clients' own manuals. tests/clients/config runs what can be run.
pub(super) const CLIENTS: [Client; 12] = [
    Client {
        word: "claude-code",
        title: "Claude Code",
        place: "a terminal",
        form: Form::Shell,
        // --header takes all words that follow, so it is the last.
        text: "claude mcp add --transport http --scope user gatewren {url} --header \"Authorization: Bearer {token}\"",
        authority_part: "",
        source: SHELL,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: true,
        hint: "",
    },
    Client {
        word: "claude-desktop",
        title: "Claude Desktop",
        place: "claude_desktop_config.json (Settings, Developer, Edit config)",
        form: Form::Json,
        // A blank behind the header's colon would be torn apart on Windows.
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
        source: Source::Paste("GATEWREN_TOKEN"),
        variable: None,
        by_name: false,
        hint: "Claude Desktop starts mcp-remote with npx, so Node.js must be installed on its machine.",
    },
    Client {
        word: "cursor",
        title: "Cursor",
        place: "~/.cursor/mcp.json",
        form: Form::Json,
        text: r#"{
  "mcpServers": {
    "gatewren": {
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" }
    }
  }
}"#,
        authority_part: "",
        source: Source::Variable(&[("{token}", "${env:GATEWREN_TOKEN}")]),
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "vscode",
        title: "VS Code",
        place: ".vscode/mcp.json, or the file that \"MCP: Open User Configuration\" opens",
        form: Form::Json,
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
        source: Source::Asks,
        variable: None,
        by_name: false,
        hint: "",
    },
    Client {
        word: "codex",
        title: "Codex",
        place: "~/.codex/config.toml",
        form: Form::Toml,
        text: "[mcp_servers.gatewren]\nurl = \"{url}\"\nbearer_token_env_var = \"GATEWREN_TOKEN\"\ntool_timeout_sec = 300",
        authority_part: "",
        source: Source::OnlyVariable,
        variable: Some("CODEX_CA_CERTIFICATE"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "gemini",
        title: "Gemini CLI",
        place: "a terminal",
        form: Form::Shell,
        text: "gemini mcp add --scope user --transport http --header \"Authorization: Bearer {token}\" gatewren {url}",
        authority_part: "",
        source: SHELL,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "librechat",
        title: "LibreChat",
        place: "librechat.yaml",
        form: Form::Yaml,
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
        hint: "Without mcpSettings.allowedAddresses LibreChat goes to no address of a private network.",
    },
    Client {
        word: "open-webui",
        title: "Open WebUI",
        place: "Admin panel, Settings, External tools, add a connection",
        form: Form::Fields,
        text: "Type: MCP (Streamable HTTP)\nURL: {url}\nAuth: Bearer\nKey: {token}\nID: gatewren\nName: {who}",
        authority_part: "",
        source: Source::Paste("(the token)"),
        variable: Some("SSL_CERT_FILE"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "n8n",
        title: "n8n",
        place: "the MCP Client Tool node, with a credential of the kind Bearer Auth",
        form: Form::Fields,
        text: "Endpoint: {url}\nServer Transport: HTTP Streamable\nAuthentication: Bearer Auth\n\
            Name of the credential: {who}\nBearer Token: {token}",
        authority_part: "",
        source: Source::Paste("(the token)"),
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "mcp-remote",
        title: "mcp-remote",
        place: "a terminal, or whatever starts a server on standard input and output",
        form: Form::Shell,
        // The quotes keep the shell out: mcp-remote itself puts the variable in, and no process list shows the token.
        text: "npx -y mcp-remote {url} --transport http-only --header 'Authorization:Bearer {token}'",
        authority_part: "",
        source: BRACES,
        variable: Some("NODE_EXTRA_CA_CERTS"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "fastmcp",
        title: "FastMCP",
        place: "a Python program",
        form: Form::Python,
        text: r#"import asyncio

from fastmcp import Client

client = Client("{url}", auth="{token}")


async def main():
    async with client:
        for tool in await client.list_tools():
            print(tool.name)


asyncio.run(main())"#,
        authority_part: "",
        source: Source::Variable(&[
            ("import asyncio\n", "import asyncio\nimport os\n"),
            ("\"{token}\"", "os.environ[\"GATEWREN_TOKEN\"]"),
        ]),
        variable: Some("SSL_CERT_FILE"),
        by_name: false,
        hint: "",
    },
    Client {
        word: "curl",
        title: "curl",
        place: "a terminal",
        form: Form::Shell,
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
