//! `gatewren metrics`: manages the token of Prometheus, and prints the configuration for it.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{deed::hand, place::Place, runtime, say::conclude};
use gatewren_base::config::TlsMode;
use gatewren_gate::deeds::{end_metrics_token, reached_at, renew_metrics_token};

const EXAMPLES: &str = "\
Examples:
  gatewren metrics token
  gatewren metrics show
  gatewren metrics revoke

The token is good for /metrics and for nothing else. There is one; a new one takes its place at once.
Besides, metrics.loopback in gatewren.toml lets whoever is on the box look without one, and agents with
the policy admin and the whole box look with their own.";

/// Manage the token with which Prometheus reads the metrics.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Create a new token and print it once; the old token is revoked at once
    Token,
    /// Show who may read the metrics, and print the part of prometheus.yml
    Show,
    /// Revoke the token
    Revoke,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &Args) -> ExitCode {
    conclude(act(args))
}

fn act(args: &Args) -> Result<String, String> {
    // The order matters: root's own files are read before root privileges are dropped.
    let settings = args.place.settings()?;
    let vault = args.place.vault()?;
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    match args.what {
        What::Token => {
            let token = runtime.block_on(renew_metrics_token((&vault, &hand())))?;
            let token = token.expose();
            Ok(if args.json {
                json!({ "token": token }).to_string()
            } else {
                format!(
                    "The token of the metrics, which is not shown again; the one before is good no more:\n{token}"
                )
            })
        }
        What::Revoke => {
            if !runtime.block_on(end_metrics_token((&vault, &hand())))? {
                return Err("there is no token of the metrics".to_owned());
            }
            Ok(if args.json {
                json!({ "revoked": true }).to_string()
            } else {
                "the token of the metrics is good no more".to_owned()
            })
        }
        What::Show => {
            let token = vault.metrics_token().hash();
            let token = token.map_err(|e| e.to_string())?.is_some();
            let loopback = settings.metrics.loopback;
            let target = reached_at(&settings);
            if args.json {
                let told = json!({ "token": token, "loopback": loopback, "target": target });
                return Ok(told.to_string());
            }
            let own = settings.tls.mode == TlsMode::Own;
            Ok(shown((token, loopback, own), &target))
        }
    }
}

fn shown((token, loopback, own): (bool, bool, bool), target: &str) -> String {
    let who = match (token, loopback) {
        (false, false) => {
            "nobody but agents with the policy admin; `gatewren metrics token` makes a token"
        }
        (true, false) => "whoever has the token",
        (false, true) => "whoever is on this box",
        (true, true) => "whoever has the token or is on this box",
    };
    let authority = if own {
        "\n    tls_config: {ca_file: /etc/prometheus/gatewren-ca.pem}"
    } else {
        ""
    };
    format!(
        "\
# /metrics is told to {who}
scrape_configs:
  - job_name: gatewren
    scheme: https
    authorization: {{credentials_file: /etc/prometheus/gatewren-token}}{authority}
    static_configs: [{{targets: [\"{target}\"]}}]"
    )
}
