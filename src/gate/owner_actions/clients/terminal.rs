//! Agents of the terminal.

use super::profile::{
    CaSetting, ClientFile, ClientProfile, SEEN_BY_BOX, SHELL, SnippetFormat, TokenSource, Trust,
};

/// The part of Claude Code's settings that makes it trust the authority.
const CLAUDE_SETTINGS: &str = "{ \"env\": { \"NODE_EXTRA_CA_CERTS\": \"{ca}\" } }";

/// tests/clients/config runs each that can be installed from npm.
pub(super) const CLIENTS: [ClientProfile; 7] = [
    // https://code.claude.com/docs/en/mcp, https://code.claude.com/docs/en/network-config
    ClientProfile {
        word: "claude-code",
        title: "Claude Code",
        form: SnippetFormat::Shell,
        // --header takes all following words, so it is the last option.
        text: "claude mcp add --transport http --scope user gatewren {url} --header \"Authorization: Bearer {token}\"",
        source: SHELL,
        // The settings work with 2.1.330; https://github.com/anthropics/claude-code/issues/10458 is about a version
        // that ignored them.
        trust: Trust::Settings {
            place: "~/.claude/settings.json",
            text: CLAUDE_SETTINGS,
            setting: CaSetting::NODE,
        },
        by_name: true,
        files: &[
            ClientFile {
                variable: "CLAUDE_CONFIG_DIR",
                text: r#"{ "mcpServers": { "gatewren": {
                    "type": "http", "url": "{url}", "headers": { "Authorization": "Bearer {token}" }
                } } }"#,
                ..ClientFile::new("", ".claude.json")
            },
            ClientFile {
                variable: "CLAUDE_CONFIG_DIR",
                text: CLAUDE_SETTINGS,
                ..ClientFile::new(".claude", "settings.json")
            },
        ],
        check: ("it shows gatewren as Connected", "claude mcp list"),
        ..ClientProfile::BASE
    },
    // https://developers.openai.com/codex/mcp. A file of CODEX_CA_CERTIFICATE is added to the system's authorities.
    ClientProfile {
        word: "codex",
        title: "Codex",
        place: "~/.codex/config.toml",
        form: SnippetFormat::Toml,
        text: "[mcp_servers.gatewren]\nurl = \"{url}\"\nbearer_token_env_var = \"GATEWREN_TOKEN\"\ntool_timeout_sec = 300",
        source: TokenSource::OnlyVariable,
        trust: Trust::Shell(CaSetting {
            variable: "CODEX_CA_CERTIFICATE",
            replaces: false,
        }),
        files: &[ClientFile {
            variable: "CODEX_HOME",
            ..ClientFile::new(".codex", "config.toml")
        }],
        check: (
            "it lists gatewren; in a session, /mcp lists its tools",
            "codex mcp list",
        ),
        ..ClientProfile::BASE
    },
    // https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md. A variable in ~/.gemini/.env is
    // too late for Node.js (tried with 0.61.0).
    ClientProfile {
        word: "gemini",
        title: "Gemini CLI",
        form: SnippetFormat::Shell,
        text: "gemini mcp add --scope user --transport http --header \"Authorization: Bearer {token}\" gatewren {url}",
        source: SHELL,
        files: &[ClientFile {
            text: r#"{ "mcpServers": { "gatewren": {
                "httpUrl": "{url}", "headers": { "Authorization": "Bearer {token}" }
            } } }"#,
            ..ClientFile::new(".gemini", "settings.json")
        }],
        // Servers are off in other folders: docs/cli/trusted-folders.md there (seen with 0.61.0).
        check: (
            "in a folder that you trust (start gemini in it, and choose so), it shows gatewren as Connected",
            "gemini mcp list",
        ),
        ..ClientProfile::BASE
    },
    // https://opencode.ai/v1/docs/mcp-servers. The next version, v2, has the entry in mcp.servers:
    // https://opencode.ai/docs/mcp-servers. It is made with Bun, whose TLS library is BoringSSL.
    ClientProfile {
        word: "opencode",
        title: "opencode",
        place: "~/.config/opencode/opencode.json",
        text: r#"{
  "mcp": {
    "gatewren": {
      "type": "remote",
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" },
      "oauth": false
    }
  }
}"#,
        source: TokenSource::Variable(&[("{token}", "{env:GATEWREN_TOKEN}")]),
        by_name: true,
        files: &[ClientFile::in_config("opencode/opencode.json")],
        check: ("it shows gatewren as connected", "opencode mcp list"),
        ..ClientProfile::BASE
    },
    // https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
    ClientProfile {
        word: "copilot",
        title: "GitHub Copilot CLI",
        form: SnippetFormat::Shell,
        text: "copilot mcp add --transport http --header \"Authorization: Bearer {token}\" gatewren {url}",
        source: SHELL,
        files: &[ClientFile {
            variable: "COPILOT_HOME",
            text: r#"{ "mcpServers": { "gatewren": {
                "type": "http", "url": "{url}", "headers": { "Authorization": "Bearer {token}" }, "tools": ["*"]
            } } }"#,
            ..ClientFile::new(".copilot", "mcp-config.json")
        }],
        check: ("in a session, /mcp show lists gatewren and its tools", ""),
        ..ClientProfile::BASE
    },
    // https://docs.cline.bot/mcp/mcp-overview
    ClientProfile {
        word: "cline",
        title: "Cline",
        place: "the file that Cline's MCP Servers, Configure opens (of the CLI: \
                ~/.cline/data/settings/cline_mcp_settings.json)",
        text: r#"{
  "mcpServers": {
    "gatewren": {
      "type": "streamableHttp",
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" },
      "timeout": 300
    }
  }
}"#,
        files: &[ClientFile::new(
            ".cline/data/settings",
            "cline_mcp_settings.json",
        )],
        check: ("MCP Servers lists gatewren and its tools", ""),
        ..ClientProfile::BASE
    },
    // https://github.com/aaif-goose/goose/blob/main/documentation/docs/guides/config-files.md. Its HTTP library takes the
    // authorities of the system (reqwest 0.13, rustls-platform-verifier).
    ClientProfile {
        word: "goose",
        title: "goose",
        place: "~/.config/goose/config.yaml",
        form: SnippetFormat::Yaml,
        text: r#"extensions:
  gatewren:
    type: streamable_http
    name: gatewren
    enabled: true
    uri: "{url}"
    headers:
      Authorization: "Bearer {token}"
    env_keys: []
    envs: {}
    timeout: 300"#,
        trust: Trust::System,
        check: SEEN_BY_BOX,
        ..ClientProfile::BASE
    },
];
