//! `gatewren notify`: lists and tests the owner's channels, shows undelivered messages, and lets the service reach push
//! services.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::console::output::{conclude, fail};
use super::console::runtime;
use super::console::target::{InstanceArgs, SubcommandArgs};
use super::job::helper_of;
use super::notify_reach::set_reach;
use gatewren_base::config::{Channel, ChannelKind, Channels, LiveSettings, Settings};
use gatewren_base::sys::{Requester, rfc3339};
use gatewren_gate::http::is_local;
use gatewren_gate::owner_actions::{reached_at, sanitize};
use gatewren_host::backends::Mail;
use gatewren_host::helper_client::HelperClient;
use gatewren_store::vault::Vault;
use gatewren_tools::notify::{
    DeliveryError, MessageSource, NotificationSender, OwnerMessage, Priority, QueuedNotification,
    RetryQueue, channels, targets,
};

/// The words for a server without channels.
const NO_CHANNELS: &str = "there are no channels; add [notify.NAME] to gatewren.toml, or add a device on the owner's page, under Settings";

/// Exit code: a channel did not accept the message.
const NOT_DELIVERED: u8 = 4;

/// The arguments of the command.
pub type NotifyArgs = SubcommandArgs<NotifySubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum NotifySubcommand {
    /// List the channels, the queued messages, and those that were given up
    List,
    /// Send a message to one channel, or to each
    ///
    /// Exits with 0 if all accepted it, with 4 if one did not, with 1 if there is none. This command sends the
    /// message itself, so the sandbox of the service does not limit it.
    Test {
        /// The name of the channel in the settings
        #[arg(value_name = "CHANNEL")]
        channel: Option<String>,
    },
    /// Let the service reach the push services of browsers on the internet, or no longer
    ///
    /// Writes a drop-in for gatewren.service and restarts it. Incoming connections stay limited to the local network.
    Push {
        /// on or off
        #[arg(value_name = "on|off", value_parser = ["on", "off"])]
        reach: String,
    },
}

/// Runs the command; it needs no running server.
pub fn run(args: &NotifyArgs) -> ExitCode {
    // Before root acts as the service, which must be able to read the token files.
    let settings = match args.place.settings() {
        Ok(settings) => settings,
        Err(words) => return fail(&words),
    };
    match &args.subcommand {
        NotifySubcommand::List => conclude(list(&args.place, &settings, args.json)),
        NotifySubcommand::Push { reach } => {
            if args.place.is_a_directory() || !args.place.is_standard() {
                return fail(
                    &"this changes the service of systemd; run it without --dir and --config",
                );
            }
            match runtime::build() {
                Ok(runtime) => {
                    let done = runtime.block_on(set_reach(reach == "on"));
                    let json =
                        |words: String| json!({ "reach": reach, "message": words }).to_string();
                    conclude(done.map(|words| if args.json { json(words) } else { words }))
                }
                Err(cause) => fail(&cause),
            }
        }
        NotifySubcommand::Test { channel } => {
            let way = args.place.file("vault.db");
            let way = way.and_then(|vault| mail_route(&args.place, &settings, &vault));
            let (mail, _open) = match way {
                Ok(way) => way,
                Err(words) => return fail(&words),
            };
            let vault = match args.place.vault() {
                Ok(vault) => vault,
                Err(words) => return fail(&words),
            };
            let runtime = match runtime::build() {
                Ok(runtime) => runtime,
                Err(cause) => return fail(&cause),
            };
            let test = ChannelTest {
                mail,
                vault,
                settings,
                channel: channel.clone(),
            };
            runtime.block_on(test.run(args.json))
        }
    }
}

fn list(place: &InstanceArgs, settings: &Settings, json: bool) -> Result<String, String> {
    let file = place.file("vault.db")?;
    let outbox = RetryQueue::load(&file.with_file_name(RetryQueue::FILE))?.unwrap_or_default();
    let vault = place.vault()?;
    let channels = channels(settings, &vault);
    if json {
        let channels = channels.iter().map(|(name, channel)| {
            json!({
                "channel": name,
                "kind": channel.kind.to_string(),
                "on": channel.on.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "agents": channel.agents,
            })
        });
        let entries = |all: &std::collections::VecDeque<QueuedNotification>| -> Vec<Value> {
            all.iter().map(as_json).collect()
        };
        let channels: Vec<Value> = channels.collect();
        let (waiting, dead) = (entries(&outbox.waiting), entries(&outbox.dead));
        let output = json!({ "channels": channels, "waiting": waiting, "given_up": dead });
        return Ok(output.to_string());
    }
    let mut lines: Vec<String> = channels
        .iter()
        .map(|(name, channel)| channel_line(name, channel))
        .collect();
    if lines.is_empty() {
        lines.push(NO_CHANNELS.to_owned());
    }
    let devices = vault.push_devices().list().map_err(|e| e.to_string())?;
    lines.extend(devices.iter().map(|device| {
        let sent = device.sent_ms.map_or("nothing sent yet".to_owned(), |at| {
            format!("last sent {}", rfc3339(at))
        });
        sanitize(&format!(
            "device {}: {}; {sent}",
            device.id, device.subscription.name
        ))
    }));
    lines.extend(outbox.waiting.iter().map(|one| entry_line("waits", one)));
    lines.extend(outbox.dead.iter().map(|one| entry_line("given up", one)));
    Ok(lines.join("\n"))
}

fn channel_line(name: &str, channel: &Channel) -> String {
    let on: Vec<String> = channel.on.iter().map(ToString::to_string).collect();
    let agents = if channel.agents { ", agents" } else { "" };
    format!("{name}: {}; gets {}{agents}", channel.kind, on.join(", "))
}

fn entry_line(how: &str, entry: &QueuedNotification) -> String {
    sanitize(&format!(
        "{how}: {} to {}, {}; tried {} times: {}",
        rfc3339(entry.at_ms),
        entry.channel,
        entry.title,
        entry.tries,
        entry.why
    ))
}

fn as_json(entry: &QueuedNotification) -> Value {
    json!({
        "channel": entry.channel,
        "at": rfc3339(entry.at_ms),
        "kind": entry.occasion,
        "title": entry.title,
        "message": entry.text,
        "tries": entry.tries,
        "next": rfc3339(entry.next_ms),
        "error": entry.why,
    })
}

/// Mail is sent through the helper; the other channels do not need it.
fn mail_route(
    place: &InstanceArgs,
    settings: &Settings,
    vault: &Path,
) -> Result<(Mail, Option<File>), String> {
    let is_mail = |channel: &Channel| channel.kind == ChannelKind::Mail;
    let (socket, open) = if settings.notify.values().any(is_mail) {
        helper_of(place, settings, vault)?
    } else {
        (settings.helper.socket.clone(), None)
    };
    let helper = HelperClient::connect_to(socket).on_behalf_of(Requester::Owner);
    Ok((Mail::new(helper), open))
}

/// A test of one channel or of each.
struct ChannelTest {
    mail: Mail,
    vault: Vault,
    settings: Settings,
    channel: Option<String>,
}

impl ChannelTest {
    async fn run(self, json: bool) -> ExitCode {
        let mut channels: Channels = channels(&self.settings, &self.vault);
        if let Some(wanted) = &self.channel {
            channels.retain(|name, _| name == wanted);
        }
        if channels.is_empty() {
            return fail(&match self.channel {
                Some(name) => {
                    format!("there is no channel {name:?}; `gatewren notify list` shows them")
                }
                None => NO_CHANNELS.to_owned(),
            });
        }
        let message = self.message();
        let live = LiveSettings::from(self.settings.clone());
        let sender = NotificationSender::new(live, self.mail.clone(), self.vault.clone());
        let mut results = Vec::new();
        for (name, channel) in &channels {
            for target in targets(&self.vault, name, channel) {
                let result = sender.send_to(&target, channel, &message).await;
                results.push((target, result));
            }
        }
        if results.is_empty() {
            return fail(&"there is no device yet; add one on the owner's page, under Settings");
        }
        report(&results, json)
    }

    fn message(&self) -> OwnerMessage {
        let mut message = OwnerMessage::new(
            MessageSource::Us("test"),
            "gatewren can reach you".to_owned(),
            "This is a test that was sent by hand on the host.".to_owned(),
            Priority::Normal,
        );
        message.link = Some(format!("https://{}/owner", reached_at(&self.settings)));
        message
    }
}

/// Prints what each channel and device did.
fn report(results: &[(String, Result<Option<IpAddr>, DeliveryError>)], json: bool) -> ExitCode {
    let all = results.iter().all(|(_, result)| result.is_ok());
    let lines = results.iter().map(|(name, result)| {
        let local = result.as_ref().ok().copied().flatten().map(is_local);
        let error = result.as_ref().err().map(ToString::to_string);
        if json {
            return json!({
                "channel": name, "delivered": error.is_none(), "error": error, "local_network": local,
            });
        }
        Value::String(match (error, local) {
            (Some(error), _) => format!("{name} did not accept it: {error}"),
            (None, Some(false)) => format!(
                "{name} accepted it, at an address outside the local network; the service can reach it only if its \
                 unit was changed: gatewren(8), \"Notifications\""
            ),
            _ => format!("{name} accepted it"),
        })
    });
    let lines: Vec<Value> = lines.collect();
    let code = conclude(Ok(if json {
        Value::Array(lines).to_string()
    } else {
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        lines.join("\n")
    }));
    if all {
        code
    } else {
        ExitCode::from(NOT_DELIVERED)
    }
}
