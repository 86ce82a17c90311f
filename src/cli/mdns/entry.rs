//! The arguments of `gatewren mdns`, and its output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::super::console::output::conclude;
use super::super::console::target::InstanceArgs;
use super::service::{AnnouncedService, AvahiState, FOLDER, ServiceFile};
use gatewren_base::sys::{LockHolder, as_owner_of};
use gatewren_gate::http::TlsServer;
use gatewren_server::app::certificate;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct MdnsArgs {
    #[command(subcommand)]
    what: MdnsSubcommand,

    #[command(flatten)]
    place: InstanceArgs,

    /// The directory where avahi-daemon looks for services
    #[arg(long, value_name = "DIR", global = true, default_value = FOLDER)]
    services: PathBuf,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum MdnsSubcommand {
    /// Announce it as _https._tcp and _mcp._tcp, in /etc/avahi/services/gatewren.service
    ///
    /// Every machine on the network can then see the server, its port, its revisions of MCP, and the pin of its
    /// certificate, which is not secret. Run it again after a change of the port, or of the certificate by hand.
    Enable,
    /// Stop announcing it
    Disable,
    /// Show whether it is announced, with which values, and whether avahi-daemon runs
    Show,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &MdnsArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &MdnsArgs) -> Result<String, String> {
    let file = ServiceFile::in_folder(&args.services);
    match args.what {
        MdnsSubcommand::Enable => {
            let server = read_server(&args.place)?;
            let changed = file.write(&server.service.text())?;
            Ok(report(args, &file, changed, Some(&server)))
        }
        MdnsSubcommand::Disable => {
            let changed = file.remove()?;
            Ok(report(args, &file, changed, None))
        }
        MdnsSubcommand::Show => {
            let Some(text) = file.read()? else {
                return Ok(report(args, &file, false, None));
            };
            let server = read_server(&args.place)?;
            let stale = text != server.service.text();
            Ok(report(args, &file, stale, Some(&server)))
        }
    }
}

/// The running server, with the values to announce.
struct AnnouncedServer {
    service: AnnouncedService,
    /// Whether only this host reaches the server.
    is_local: bool,
}

fn read_server(place: &InstanceArgs) -> Result<AnnouncedServer, String> {
    let settings = place.settings_in_directory()?;
    let source = certificate(&settings).map_err(|e| e.to_string())?;
    let directory = &settings.state_dir;
    let read = as_owner_of(directory, || {
        (TlsServer::pin_of(&source), LockHolder::of(directory))
    });
    let (pin, holder) = read.map_err(|cause| {
        let directory = directory.display();
        format!("cannot read {directory}: {cause}; start gatewren once, and run this as root")
    })?;
    let bound = holder.and_then(|holder| holder.address);
    // The bound address counts: systemd may have passed a socket with another port than in the settings.
    let bound = bound.or_else(|| settings.listen.first().copied());
    let Some(bound) = bound else {
        return Err("no address to listen on; set `listen`".to_owned());
    };
    let pin = pin.map_err(|e| e.to_string())?;
    let port = bound.port();
    Ok(AnnouncedServer {
        service: AnnouncedService { port, pin },
        is_local: bound.ip().is_loopback(),
    })
}

/// The result as text or JSON. For `show`, `changed` means that the file is out of date.
fn report(
    args: &MdnsArgs,
    file: &ServiceFile,
    changed: bool,
    server: Option<&AnnouncedServer>,
) -> String {
    let avahi = AvahiState::here();
    let path = file.path();
    if args.json {
        let service = server.map(|AnnouncedServer { service, is_local }| {
            json!({
                "port": service.port, "pin": service.pin.to_string(), "txt": service.records(),
                "only_this_box": is_local,
            })
        });
        let stale = args.what == MdnsSubcommand::Show && changed;
        return json!({
            "enabled": server.is_some(), "changed": changed && !stale, "stale": stale, "file": path,
            "service": service, "avahi": { "installed": avahi.installed, "running": avahi.running },
        })
        .to_string();
    }
    let path = path.display();
    let Some(AnnouncedServer { service, is_local }) = server else {
        return match (args.what, changed) {
            (MdnsSubcommand::Disable, true) => format!("no longer announced: {path} was removed"),
            _ => format!("not announced: {path} does not exist"),
        };
    };
    let mut lines = vec![match (args.what, changed) {
        (MdnsSubcommand::Show, true) => {
            format!("{path} is out of date; run: gatewren mdns enable")
        }
        (_, true) => format!("{path} was written"),
        (_, false) => format!("{path} is up to date"),
    }];
    let kinds = "  _https._tcp and _mcp._tcp, port";
    lines.push(format!("{kinds} {}", service.port));
    lines.extend(service.records().map(|record| format!("  {record}")));
    lines.push(avahi.words().to_owned());
    if *is_local {
        let words = "warning: the server listens only on a loopback address; other machines cannot reach it";
        lines.push(words.to_owned());
    }
    lines.join("\n")
}
