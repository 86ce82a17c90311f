//! What a person types after `gatewren cert`, and where it goes.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::{place::Place, say::conclude};
use super::{home::Home, install, renew, show, tailscale, trust};

/// See, renew, trust and replace the certificate that clients are shown.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say where the certificate is from, for what and until when it holds, its pin, and what the running server shows
    Show,
    /// Make a new certificate now, or read files of the owner's again, and have the running server show it
    ///
    /// No connection is closed. The authority stays, and with it what clients trust.
    Renew,
    /// Say how each system is told to trust this box's authority, write its certificate, or have this machine trust it
    Trust(trust::Args),
    /// Take a certificate of the owner's own, here or as the hook of an ACME client, and have the running server show it
    ///
    /// The pair is checked, copied to where the service alone can read it, and turned on by
    /// conf.d/cert-installed.toml beside the settings. No connection is closed. The same again changes nothing.
    Install(install::Args),
    /// Take the certificate that Tailscale gets for this box's name in the tailnet
    ///
    /// Runs `tailscale cert`, which renews it when it is time, so this is to be run daily:
    /// systemctl enable --now gatewren-tailscale-cert.timer
    Tailscale(tailscale::Args),
}

/// Runs the command; 1 when it could not be done.
pub fn run(args: &Args) -> ExitCode {
    conclude(act(args))
}

fn act(args: &Args) -> Result<String, String> {
    let home = Home::of(&args.place, args.json)?;
    match &args.what {
        What::Show => show::run(&home),
        What::Renew => renew::run(&home),
        What::Trust(args) => trust::run(&home, args),
        What::Install(args) => install::run(&home, args),
        What::Tailscale(args) => tailscale::run(&home, args),
    }
}
