//! `gatewren metrics`: manages the token of Prometheus, and prints the configuration for it.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::console::output::conclude;
use super::console::runtime;
use super::console::target::SubcommandArgs;
use super::owner_action::owner_context;
use gatewren_base::config::{Settings, TlsMode};
use gatewren_gate::owner_actions::{end_metrics_token, reached_at, renew_metrics_token};

/// The end of the help.
pub const EXAMPLES: &str = "\
Examples:
  gatewren metrics token
  gatewren metrics show
  gatewren metrics revoke

The token is valid only for /metrics. There is only one; a new one replaces it at once.
metrics.loopback in gatewren.toml lets all users of this host read the metrics without a token. Agents
with the policy admin for the whole server read them with their own token.";

/// The arguments of the command.
pub type MetricsArgs = SubcommandArgs<MetricsSubcommand>;

/// The subcommands.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum MetricsSubcommand {
    /// Create a new token and print it once; the old token is revoked at once
    Token,
    /// Show who may read the metrics, and print the part of prometheus.yml
    Show,
    /// Revoke the token
    Revoke,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &MetricsArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &MetricsArgs) -> Result<String, String> {
    // The order matters: root's own files are read before root privileges are dropped.
    let settings = args.place.settings_in_directory()?;
    let vault = args.place.vault()?;
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    match args.subcommand {
        MetricsSubcommand::Token => {
            let token = runtime.block_on(renew_metrics_token(&owner_context(&vault)))?;
            let token = token.expose();
            Ok(if args.json {
                json!({ "token": token }).to_string()
            } else {
                format!(
                    "The metrics token, which is not shown again; the old one is revoked:\n{token}"
                )
            })
        }
        MetricsSubcommand::Revoke => {
            if !runtime.block_on(end_metrics_token(&owner_context(&vault)))? {
                return Err("there is no metrics token".to_owned());
            }
            Ok(if args.json {
                json!({ "revoked": true }).to_string()
            } else {
                "the metrics token is revoked".to_owned()
            })
        }
        MetricsSubcommand::Show => {
            let token = vault.metrics_token().hash();
            let token = token.map_err(|e| e.to_string())?.is_some();
            if !args.json {
                return Ok(scrape_config(&settings, token));
            }
            let (loopback, target) = (settings.metrics.loopback, reached_at(&settings));
            Ok(json!({ "token": token, "loopback": loopback, "target": target }).to_string())
        }
    }
}

/// The part of prometheus.yml, and who may read the metrics.
fn scrape_config(settings: &Settings, has_token: bool) -> String {
    let target = reached_at(settings);
    let who = match (has_token, settings.metrics.loopback) {
        (false, false) => "agents with the policy admin; `gatewren metrics token` creates a token",
        (true, false) => "the holder of the token",
        (false, true) => "all users of this host",
        (true, true) => "the holder of the token, and all users of this host",
    };
    let authority = if settings.tls.mode == TlsMode::Own {
        "\n    tls_config: {ca_file: /etc/prometheus/gatewren-ca.pem}"
    } else {
        ""
    };
    format!(
        "\
# /metrics can be read by {who}
scrape_configs:
  - job_name: gatewren
    scheme: https
    authorization: {{credentials_file: /etc/prometheus/gatewren-token}}{authority}
    static_configs: [{{targets: [\"{target}\"]}}]"
    )
}
