//! What `gatewren try` prints when the server is up.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::console::program::is_there;
use super::console::style::{Style, shell_path};
use gatewren_base::config::Preset;
use gatewren_base::sys::Secret;

/// The socket of D-Bus, over which systemd is asked.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";

/// The first words of a demo.
const DEMO: &str = "The demo is running. Nothing in it is real.";

/// The file with the token of the agent that has this policy.
pub fn token_file(directory: &Path, policy: Preset) -> PathBuf {
    directory.join(format!("token-{policy}"))
}

/// The facts to print when the server is up.
pub struct TrialWords {
    /// The URL for clients.
    pub url: String,
    /// The name of the first agent.
    pub agent: String,
    /// Its token.
    pub token: Secret,
    /// The code for setting the owner's password, if none is set.
    pub owner_code: Option<Secret>,
    /// The certificate of the authority.
    pub ca: PathBuf,
    /// The state directory.
    pub directory: PathBuf,
    /// The policy of the first agent.
    pub policy: Preset,
    /// Whether the directory was named on the command line.
    pub named: bool,
    /// Whether the socket of a container engine was named.
    pub has_engine: bool,
    /// Whether the server is invented.
    pub is_demo: bool,
}

impl TrialWords {
    /// Prints them.
    pub fn print(&self, json: bool) {
        let text = if json { self.json() } else { self.human() };
        let mut out = io::stdout().lock();
        // The process that started us may have closed its end; the server runs all the same.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// The fields are an interface: our tests and other programs read this line.
    fn json(&self) -> String {
        json!({
            "url": self.url,
            "agent": self.agent,
            "token": self.token.expose(),
            "owner_code": self.owner_code.as_ref().map(Secret::expose),
            "ca": self.ca,
            "state_db": self.directory.join("state.db"),
            "pid": std::process::id(),
            "policy": self.policy.as_str(),
            "demo": self.is_demo,
        })
        .to_string()
    }

    /// The text for a person. It fits 80 columns, and has no secret but the code, which is valid once: command lines
    /// stay on the screen and in the history of the shell.
    fn human(&self) -> String {
        // Claude Code uses BoringSSL, which accepts our certificate only by name.
        let url = self.url.replacen("//127.0.0.1:", "//localhost:", 1);
        let page = Style::Bold.paint(&url.replace("/mcp", "/owner"));
        let code = self.owner_code.as_ref().map_or_else(String::new, |code| {
            format!("   first code: {}", code.expose())
        });
        let (ca, directory) = (shell_path(&self.ca), shell_path(&self.directory));
        let token = shell_path(&token_file(&self.directory, self.policy));
        let (may, other) = may(self.policy);
        let demo = if self.is_demo { " --demo" } else { "" };
        let again = if self.named {
            format!(" --dir {directory}")
        } else {
            String::new()
        };
        let (title, unseen) = if self.is_demo {
            (DEMO, String::new())
        } else {
            ("gatewren is running.", self.unseen())
        };
        format!(
            "\
{title} Press Ctrl-C to stop it.

  Owner's page   {page}{code}
  MCP address    {}

Connect Claude Code (paste this into another terminal):
  export NODE_EXTRA_CA_CERTS={ca}
  claude mcp add --transport http gatewren \\
    {url} --header \\
    \"Authorization: Bearer $(cat {token})\"
Another client:
  gatewren client-config --dir {directory}

Then ask: \"What is running on this server, and is anything wrong?\"

{may}
{other}{demo}{again}
The state is kept in {directory}{unseen}",
            Style::Bold.paint(&url)
        )
    }

    /// What an assistant cannot see on this host, as a line; empty if it sees everything.
    fn unseen(&self) -> String {
        let mut unseen = Vec::new();
        if !Path::new(SYSTEM_BUS).exists() {
            unseen.push("systemd units (no D-Bus)");
        }
        if !self.has_engine && !is_there("lxc-info") {
            unseen.push("containers (no LXC)");
        }
        if unseen.is_empty() {
            return String::new();
        }
        format!("\nNot visible on this box: {}", unseen.join(", "))
    }
}

/// What an agent with this policy may do, and the command for another policy.
fn may(policy: Preset) -> (&'static str, &'static str) {
    const LOOK_ONLY: &str = "Look only: gatewren try --policy observe";
    match policy {
        Preset::Observe => (
            "The assistant may look, and change nothing.",
            "More: gatewren try --policy operate",
        ),
        Preset::Suggest => (
            "The assistant may look; every change waits for your approval.",
            LOOK_ONLY,
        ),
        Preset::Operate => (
            "The assistant may look and start things; the rest waits for your approval.",
            LOOK_ONLY,
        ),
        Preset::Admin => (
            "The assistant may do everything; the most dangerous calls ask first.",
            LOOK_ONLY,
        ),
    }
}
