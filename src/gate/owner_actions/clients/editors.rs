//! Editors and their extensions.

use super::profile::{
    CaSetting, ClientFile, ClientProfile, ENV_BRACES, InstallLink, MCP_REMOTE, MCP_REMOTE_CA,
    MCP_SERVERS_URL, NEEDS_NODE, SEEN_BY_BOX, SnippetFormat, TokenSource, Trust,
};

pub(super) const CLIENTS: [ClientProfile; 6] = [
    // https://cursor.com/docs/context/mcp, https://cursor.com/docs/mcp/install-links
    ClientProfile {
        word: "cursor",
        title: "Cursor",
        place: "~/.cursor/mcp.json",
        text: MCP_SERVERS_URL,
        source: ENV_BRACES,
        trust: Trust::Desktop(CaSetting::NODE),
        link: Some(InstallLink::Base64(
            "cursor://anysphere.cursor-deeplink/mcp/install?name=gatewren&config=",
        )),
        files: &[ClientFile::new(".cursor", "mcp.json")],
        check: (
            "Cursor Settings, Tools & MCP: gatewren has a green dot and lists its tools",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://code.visualstudio.com/docs/copilot/customization/mcp-servers; the link's form with inputs is the one that
    // VS Code's handler of vscode:mcp/install reads.
    ClientProfile {
        word: "vscode",
        title: "VS Code",
        place: ".vscode/mcp.json, or the file that \"MCP: Open User Configuration\" opens",
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
        source: TokenSource::Asks,
        trust: Trust::System,
        link: Some(InstallLink::VsCode),
        files: &[ClientFile::in_config("Code/User/mcp.json")],
        check: (
            "\"MCP: List Servers\" in the Command Palette shows gatewren as running",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://docs.windsurf.com/windsurf/cascade/mcp. Its key is serverUrl; it ignores url.
    ClientProfile {
        word: "windsurf",
        title: "Windsurf",
        place: "~/.codeium/windsurf/mcp_config.json",
        text: r#"{
  "mcpServers": {
    "gatewren": {
      "serverUrl": "{url}",
      "headers": { "Authorization": "Bearer {token}" }
    }
  }
}"#,
        source: ENV_BRACES,
        trust: Trust::Desktop(CaSetting::NODE),
        files: &[ClientFile::new(".codeium/windsurf", "mcp_config.json")],
        check: (
            "refresh the list of MCP servers in Cascade's panel: it shows gatewren and its tools",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://zed.dev/docs/ai/mcp. Its HTTP library takes the authorities of the system.
    ClientProfile {
        word: "zed",
        title: "Zed",
        place: "the file that \"zed: open settings file\" opens",
        text: r#"{
  "context_servers": {
    "gatewren": {
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" }
    }
  }
}"#,
        trust: Trust::System,
        files: &[ClientFile::in_config("zed/settings.json")],
        check: (
            "the Agent Panel's settings show gatewren with a green dot",
            "",
        ),
        ..ClientProfile::BASE
    },
    // https://www.jetbrains.com/help/ai-assistant/mcp.html, https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html.
    // Both document JSON for commands only.
    ClientProfile {
        word: "jetbrains",
        title: "JetBrains AI Assistant, Junie",
        place: "Settings, Tools, AI Assistant (or Junie), Model Context Protocol: a new server as JSON",
        text: MCP_REMOTE,
        authority_part: MCP_REMOTE_CA,
        trust: Trust::InText,
        first: NEEDS_NODE,
        check: SEEN_BY_BOX,
        ..ClientProfile::BASE
    },
    // https://docs.continue.dev/customize/deep-dives/mcp; requestOptions is in the schema of @continuedev/cli 1.5.47.
    ClientProfile {
        word: "continue",
        title: "Continue",
        place: ".continue/mcpServers/gatewren.yaml in the workspace",
        form: SnippetFormat::Yaml,
        text: r#"name: gatewren
version: 0.0.1
schema: v1
mcpServers:
  - name: gatewren
    type: streamable-http
    url: "{url}"
    requestOptions:
      headers:
        Authorization: "Bearer {token}""#,
        trust: Trust::Desktop(CaSetting::NODE),
        check: SEEN_BY_BOX,
        ..ClientProfile::BASE
    },
];
