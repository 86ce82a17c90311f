//! What a person types after `gatewren mdns`, and what comes of it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::super::{place::Place, say::conclude};
use super::service::{Avahi, FOLDER, ServiceFile, Told};
use crate::app::certificate;
use crate::http::Tls;
use crate::sys::{Holder, as_owner_of};

/// Make the server known on the local network, with the pin of its certificate.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Where avahi-daemon looks for services
    #[arg(long, value_name = "DIR", global = true, default_value = FOLDER)]
    services: PathBuf,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum What {
    /// Announce it as _https._tcp and _mcp._tcp, in /etc/avahi/services/gatewren.service
    ///
    /// Whoever is on the network can then see that it is here, at which port, which revisions of MCP it speaks, and the
    /// pin of its certificate, which is no secret. After a change of port, or of a certificate by hand, run it again.
    Enable,
    /// Announce it no more
    Disable,
    /// Say whether it is announced, as what, and whether avahi-daemon runs
    Show,
}

/// Runs the command; 1 when it could not be done.
pub fn run(args: &Args) -> ExitCode {
    conclude(act(args))
}

fn act(args: &Args) -> Result<String, String> {
    let file = ServiceFile::in_folder(&args.services);
    match args.what {
        What::Enable => {
            let (told, alone) = told(&args.place)?;
            let changed = file.write(&told.text())?;
            Ok(said(args, &file, (true, changed), Some((&told, alone))))
        }
        What::Disable => {
            let changed = file.remove()?;
            Ok(said(args, &file, (false, changed), None))
        }
        What::Show => {
            let Some(text) = file.read()? else {
                return Ok(said(args, &file, (false, false), None));
            };
            let (told, alone) = told(&args.place)?;
            let stale = text != told.text();
            Ok(said(args, &file, (true, stale), Some((&told, alone))))
        }
    }
}

/// What there is to tell of the server, and whether nobody but this box reaches it.
fn told(place: &Place) -> Result<(Told, bool), String> {
    let settings = place.settings_there()?;
    let source = certificate(&settings).map_err(|e| e.to_string())?;
    let directory = &settings.state_dir;
    let read = as_owner_of(directory, || (Tls::pin_of(&source), Holder::of(directory)));
    let (pin, holder) = read.map_err(|cause| {
        let directory = directory.display();
        format!("cannot read {directory}: {cause}; start gatewren once, and run this as root")
    })?;
    let bound = holder.and_then(|holder| holder.address);
    // What it has bound is what counts: systemd may have given it another port than the settings name.
    let bound = bound.or_else(|| settings.listen.first().copied());
    let Some(bound) = bound else {
        return Err("no address is listened on; set `listen`".to_owned());
    };
    let pin = pin.map_err(|e| e.to_string())?;
    let port = bound.port();
    Ok((Told { port, pin }, bound.ip().is_loopback()))
}

/// In words or JSON. Of `show`, a change is one that is still to be told.
fn said(
    args: &Args,
    file: &ServiceFile,
    (enabled, changed): (bool, bool),
    told: Option<(&Told, bool)>,
) -> String {
    let avahi = Avahi::here();
    let path = file.path();
    if args.json {
        let service = told.map(|(told, alone)| {
            json!({ "port": told.port, "pin": told.pin.to_string(), "txt": told.records(), "only_this_box": alone })
        });
        let stale = args.what == What::Show && changed;
        return json!({
            "enabled": enabled, "changed": changed && !stale, "stale": stale, "file": path, "service": service,
            "avahi": { "installed": avahi.installed, "running": avahi.running },
        })
        .to_string();
    }
    let path = path.display();
    let Some((told, alone)) = told else {
        return match (args.what, changed) {
            (What::Disable, true) => format!("announced no more: {path} was removed"),
            _ => format!("not announced: there is no {path}"),
        };
    };
    let mut lines = vec![match (args.what, changed) {
        (What::Show, true) => {
            format!("{path} tells what is no longer so; run: gatewren mdns enable")
        }
        (_, true) => format!("{path} was written"),
        (_, false) => format!("{path} is as it must be"),
    }];
    let kinds = "  _https._tcp and _mcp._tcp, port";
    lines.push(format!("{kinds} {}", told.port));
    lines.extend(told.records().map(|record| format!("  {record}")));
    lines.push(avahi.words().to_owned());
    if alone {
        let words = "warning: it listens for this box alone; nobody else reaches what is announced";
        lines.push(words.to_owned());
    }
    lines.join("\n")
}
