//! The arguments of `gatewren cert`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::console::output::conclude;
use super::super::console::target::SubcommandArgs;
use super::{home::CertContext, install, renew, show, tailscale, trust};

/// The arguments of the command.
pub type CertArgs = SubcommandArgs<CertSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum CertSubcommand {
    /// Show where the certificate comes from, its names, when it expires, its pin, and what the running server
    /// presents
    Show,
    /// Create a new certificate now, or read the owner's files again, and make the running server use it
    ///
    /// No connection is closed. The authority stays the same, so clients still trust it.
    Renew,
    /// Explain how each system trusts this host's authority, write its certificate, or make this machine trust it
    Trust(trust::CertTrustArgs),
    /// Install a certificate of your own, here or as the hook of an ACME client, and make the running server use
    /// it
    ///
    /// The pair is checked, copied to where only the service can read it, and enabled by
    /// conf.d/cert-installed.toml beside the settings. No connection is closed. Installing the same pair again
    /// changes nothing.
    Install(install::CertInstallArgs),
    /// Install the certificate that Tailscale issues for this host's name in the tailnet
    ///
    /// Runs `tailscale cert`, which renews the certificate when it is due, so run this daily: systemctl enable
    /// --now gatewren-tailscale-cert.timer
    Tailscale(tailscale::CertTailscaleArgs),
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &CertArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &CertArgs) -> Result<String, String> {
    let home = CertContext::of(&args.place, args.json)?;
    match &args.subcommand {
        CertSubcommand::Show => show::run(&home),
        CertSubcommand::Renew => renew::run(&home),
        CertSubcommand::Trust(args) => trust::run(&home, args),
        CertSubcommand::Install(args) => install::run(&home, args),
        CertSubcommand::Tailscale(args) => tailscale::run(&home, args),
    }
}
