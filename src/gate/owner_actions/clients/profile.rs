//! What is known of a client.

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
pub(in super::super) enum TokenSource {
    /// From the variable `GATEWREN_TOKEN`, which is read when the snippet is used. The snippet gets these
    /// replacements, as pairs.
    Variable(&'static [(&'static str, &'static str)]),
    /// Only from the variable: such a client accepts no token in its settings.
    OnlyVariable,
    /// The client prompts for it.
    Asks,
    /// From the snippet: the user puts the token in place of this text.
    Paste(&'static str),
    /// From the server, over OAuth, after the owner has approved the client.
    OAuth,
}

/// A variable that names a file of authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct CaSetting {
    pub(in super::super) variable: &'static str,
    /// Whether the file replaces the public authorities: then it must contain them too.
    pub(in super::super) replaces: bool,
}

impl CaSetting {
    /// Node.js and Bun read the file in addition to their own list, once, at their start.
    /// <https://nodejs.org/api/cli.html#node_extra_ca_certsfile>
    pub(in super::super) const NODE: Self = Self {
        variable: "NODE_EXTRA_CA_CERTS",
        replaces: false,
    };
    /// httpx, and therefore the MCP SDK for Python: <https://www.python-httpx.org/advanced/ssl/>
    pub(in super::super) const PYTHON: Self = Self {
        variable: "SSL_CERT_FILE",
        replaces: true,
    };
}

/// How a client learns of gatewren's authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Trust {
    /// The snippet names the file.
    InText,
    /// From its system's trust store.
    System,
    /// From its own settings; versions that ignore them need the variable.
    Settings {
        place: &'static str,
        text: &'static str,
        setting: CaSetting,
    },
    /// From a variable of the shell that starts it.
    Shell(CaSetting),
    /// From a variable of the desktop that starts it.
    Desktop(CaSetting),
    /// From a variable of its container; the name is the one of its service in the documented compose file.
    Compose(&'static str, CaSetting),
    /// From nowhere: it connects over the internet, and only to names with a public certificate.
    PublicOnly,
}

/// A link that opens the client and adds the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum InstallLink {
    /// The address up to the server's configuration, which is JSON in base64.
    Base64(&'static str),
    /// VS Code's own form, which has a command for the terminal too.
    VsCode,
}

/// A settings file of a client that gatewren can edit.
#[derive(Clone, Copy)]
pub(in super::super) struct ClientFile {
    /// The variable that can name its folder; empty if there is none.
    pub(in super::super) variable: &'static str,
    /// The folder otherwise, in the user's home directory.
    pub(in super::super) folder: &'static str,
    pub(in super::super) name: &'static str,
    /// What to add, in JSON with the snippet's placeholders; empty if it is the snippet.
    pub(in super::super) text: &'static str,
}

impl ClientFile {
    /// A file in the home directory that gets the snippet.
    pub(super) const fn new(folder: &'static str, name: &'static str) -> Self {
        Self {
            variable: "",
            folder,
            name,
            text: "",
        }
    }

    /// The same, in the folder of the XDG base directories.
    pub(super) const fn in_config(name: &'static str) -> Self {
        Self {
            variable: "XDG_CONFIG_HOME",
            ..Self::new(".config", name)
        }
    }
}

/// A client in its current version.
#[derive(Clone, Copy)]
pub(in super::super) struct ClientProfile {
    /// Its name on the command line.
    pub(in super::super) word: &'static str,
    pub(in super::super) title: &'static str,
    /// Where the snippet goes, in words.
    pub(in super::super) place: &'static str,
    pub(in super::super) form: SnippetFormat,
    /// The snippet, with the placeholders `{url}`, `{host}` (with the port), `{token}`, `{ca}` and `{who}`.
    pub(in super::super) text: &'static str,
    /// The part of it to omit if the certificate is from a public authority.
    pub(in super::super) authority_part: &'static str,
    pub(in super::super) source: TokenSource,
    pub(in super::super) trust: Trust,
    /// Whether it can connect only by name when gatewren's own authority issued the certificate: `BoringSSL` does not
    /// support name constraints for addresses.
    pub(in super::super) by_name: bool,
    /// A step of its own about the trust in gatewren's authority; empty if there is none.
    pub(in super::super) trust_note: &'static str,
    /// A step of its own before the snippet; empty if there is none.
    pub(in super::super) first: &'static str,
    pub(in super::super) link: Option<InstallLink>,
    /// Its files that `--write` edits, all of them needed; empty if a person has to do it.
    pub(in super::super) files: &'static [ClientFile],
    /// How to see that it is connected: in words, and a command, which is empty if there is none.
    pub(in super::super) check: (&'static str, &'static str),
}

impl ClientProfile {
    /// What most clients have in common.
    pub(super) const BASE: Self = Self {
        word: "",
        title: "",
        place: "a terminal",
        form: SnippetFormat::Json,
        text: "",
        authority_part: "",
        source: TokenSource::Paste("GATEWREN_TOKEN"),
        trust: Trust::Shell(CaSetting::NODE),
        by_name: false,
        trust_note: "",
        first: "",
        link: None,
        files: &[],
        check: ("", ""),
    };
}

/// The shell puts the token into the text.
pub(super) const SHELL: TokenSource = TokenSource::Variable(&[("{token}", "$GATEWREN_TOKEN")]);
/// The client itself expands the variable.
pub(super) const BRACES: TokenSource = TokenSource::Variable(&[("{token}", "${GATEWREN_TOKEN}")]);
/// The same, as editors write it.
pub(super) const ENV_BRACES: TokenSource =
    TokenSource::Variable(&[("{token}", "${env:GATEWREN_TOKEN}")]);

/// An entry of the kind that most clients have, in a file of servers.
pub(super) const MCP_SERVERS_URL: &str = r#"{
  "mcpServers": {
    "gatewren": {
      "url": "{url}",
      "headers": { "Authorization": "Bearer {token}" }
    }
  }
}"#;

/// The bridge `mcp-remote`, for clients that only start commands. On Windows, a blank after the header's colon would
/// split the argument. <https://github.com/geelen/mcp-remote#custom-headers>
pub(super) const MCP_REMOTE: &str = r#"{
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
}"#;
pub(super) const MCP_REMOTE_CA: &str = ",\n        \"NODE_EXTRA_CA_CERTS\": \"{ca}\"";
pub(super) const NEEDS_NODE: &str = "Install Node.js: the client starts mcp-remote with npx, because it connects to no private server itself.";

/// The check for a client whose documentation names none.
pub(super) const SEEN_BY_BOX: (&str, &str) = (
    "ask it something about the box; `gatewren agent list` there shows when the agent was last used",
    "",
);
