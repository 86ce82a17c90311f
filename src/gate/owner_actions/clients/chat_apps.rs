//! Chat applications for the desktop and for containers.

use super::profile::{
    BRACES, CaSetting, ClientProfile, InstallLink, MCP_REMOTE, MCP_REMOTE_CA, MCP_SERVERS_URL,
    NEEDS_NODE, SnippetFormat, TokenSource, Trust,
};

pub(super) const CLIENTS: [ClientProfile; 8] = [
    // https://modelcontextprotocol.io/docs/develop/connect-local-servers. It connects to no server that its file names by
    // address: https://support.claude.com/en/articles/11503834-building-custom-integrations-via-remote-mcp-servers
    ClientProfile {
        word: "claude-desktop",
        title: "Claude Desktop",
        place: "claude_desktop_config.json (Settings, Developer, Edit config)",
        text: MCP_REMOTE,
        authority_part: MCP_REMOTE_CA,
        trust: Trust::InText,
        first: NEEDS_NODE,
        check: (
            "quit and start Claude Desktop; Settings, Developer shows gatewren as running",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://www.librechat.ai/docs/features/mcp
    ClientProfile {
        word: "librechat",
        title: "LibreChat",
        place: "librechat.yaml",
        form: SnippetFormat::Yaml,
        // Without mcpSettings.allowedAddresses, LibreChat does not connect to private networks.
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
        source: BRACES,
        trust: Trust::Compose("api", CaSetting::NODE),
        check: (
            "restart LibreChat; its list of MCP servers below the prompt has gatewren",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://docs.openwebui.com/features/mcp
    ClientProfile {
        word: "open-webui",
        title: "Open WebUI",
        place: "Admin panel, Settings, External tools, add a connection",
        form: SnippetFormat::Fields,
        text: "Type: MCP (Streamable HTTP)\nURL: {url}\nAuth: Bearer\nKey: {token}\nID: gatewren\nName: {who}",
        source: TokenSource::Paste("(the token)"),
        trust: Trust::Compose("open-webui", CaSetting::PYTHON),
        check: ("the button Verify Connection beside the URL succeeds", ""),
        ..ClientProfile::BASE
    },
    // https://docs.n8n.io/integrations/builtin/cluster-nodes/sub-nodes/n8n-nodes-langchain.toolmcp/
    ClientProfile {
        word: "n8n",
        title: "n8n",
        place: "the MCP Client Tool node, with a credential of type Bearer Auth",
        form: SnippetFormat::Fields,
        text: "Endpoint: {url}\nServer Transport: HTTP Streamable\nAuthentication: Bearer Auth\n\
            Name of the credential: {who}\nBearer Token: {token}",
        source: TokenSource::Paste("(the token)"),
        trust: Trust::Compose("n8n", CaSetting::NODE),
        check: (
            "with Tools to Include on Selected, the node lists the tools",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://www.home-assistant.io/integrations/mcp. The variable is read in homeassistant/util/ssl.py, which has the
    // list of certifi otherwise; the 10 s are TIMEOUT in homeassistant/components/mcp/coordinator.py.
    ClientProfile {
        word: "home-assistant",
        title: "Home Assistant",
        place: "Settings, Devices & services, Add integration, Model Context Protocol",
        form: SnippetFormat::Fields,
        text: "URL: https://{host}/connect/mcp",
        source: TokenSource::OAuth,
        trust: Trust::Compose(
            "homeassistant",
            CaSetting {
                variable: "REQUESTS_CA_BUNDLE",
                replaces: true,
            },
        ),
        trust_note: "Home Assistant OS takes no such variable: there, give the box a certificate of a public authority, \
                     with `gatewren cert tailscale` or `gatewren cert install`",
        first: "Home Assistant waits 10 s for an answer: a tool that takes longer fails",
        check: (
            "the integration has no error; then choose gatewren in the settings of a conversation agent",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://platform.openai.com/docs/guides/developer-mode
    ClientProfile {
        word: "chatgpt",
        title: "ChatGPT",
        place: "chatgpt.com, Settings, Apps, Create app (after Advanced settings, Developer mode)",
        form: SnippetFormat::Fields,
        text: "Name: gatewren\nMCP Server URL: https://{host}/connect/mcp\nAuthentication: OAuth",
        source: TokenSource::OAuth,
        trust: Trust::PublicOnly,
        check: ("a chat with the app gatewren lists its tools", ""),
        ..ClientProfile::BASE
    },
    // https://support.claude.com/en/articles/11503834-building-custom-integrations-via-remote-mcp-servers: the
    // requests come from Anthropic's addresses, even for Claude Desktop.
    ClientProfile {
        word: "claude-connector",
        title: "Claude connectors (web, desktop, phone)",
        place: "claude.ai, Customize, Connectors, Add custom connector",
        form: SnippetFormat::Fields,
        text: "Name: gatewren\nRemote MCP server URL: https://{host}/connect/mcp",
        source: TokenSource::OAuth,
        trust: Trust::PublicOnly,
        check: ("Connectors shows gatewren as connected, with its tools", ""),
        ..ClientProfile::BASE
    },
    // https://lmstudio.ai/docs/app/mcp, https://lmstudio.ai/docs/app/mcp/deeplink
    ClientProfile {
        word: "lm-studio",
        title: "LM Studio",
        place: "mcp.json (Program, Install, Edit mcp.json)",
        text: MCP_SERVERS_URL,
        trust: Trust::Desktop(CaSetting::NODE),
        link: Some(InstallLink::Base64(
            "lmstudio://add_mcp?name=gatewren&config=",
        )),
        check: (
            "Program lists mcp/gatewren; switch it on, and it lists its tools",
            "",
        ),
        ..ClientProfile::BASE
    },
];
