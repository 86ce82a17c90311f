//! `notify_send`: messages from an agent to the owner.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded_text::BoundedText;
use crate::notify::{MessageSource, NotificationSender, NotifyError, OwnerMessage, Priority};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(notification_sender: Arc<NotificationSender>) -> Toolset<NotificationSender> {
    Toolset::new(notification_sender)
        .with_name("notifications")
        .tool("notify_send", Risk::Write, send)
        .reaches_other_machines()
        .about(Scope::Within)
        .titled("Send the owner a message")
}

/// Send the owner a message, marked as yours, to their phone or another channel, and return the channel that accepted
/// it. Use it if the owner must know before reading `notification_list`; send no secrets.
///
/// Fails if the channel rejects it or your hourly limit is reached.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The title, in a few words.
    title: Option<BoundedText<120>>,
    /// The message for the owner.
    message: BoundedText<1000>,
    /// How soon the owner should read it.
    #[serde(default)]
    priority: Asked,
    /// The channel's name, as the owner set it; default: the first by name.
    channel: Option<String>,
}

/// How soon the owner should read it.
#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Asked {
    Low,
    #[default]
    Normal,
    High,
}

#[derive(Serialize, JsonSchema)]
struct Sent {
    /// The channel that accepted it.
    channel: String,
    /// Whether it was delivered; a failure is an error.
    delivered: bool,
}

async fn send(notification_sender: Arc<NotificationSender>, asked: Send, cx: Cx) -> Result<Sent> {
    let caller = cx.caller();
    let priority = match asked.priority {
        Asked::Low => Priority::Low,
        Asked::Normal => Priority::Normal,
        Asked::High => Priority::High,
    };
    let title = asked.title.map(BoundedText::into_text).unwrap_or_default();
    let source = MessageSource::Agent(caller.name.to_string());
    let message = OwnerMessage::new(source, title, asked.message.into_text(), priority);
    let sent = notification_sender.send(&caller.agent, asked.channel.as_deref(), &message);
    let channel = sent.await.map_err(failed)?;
    Ok(Sent {
        channel,
        delivered: true,
    })
}

fn failed(why: NotifyError) -> ToolError {
    match why {
        NotifyError::NoChannel(there) if there.is_empty() => {
            ToolError::new("No channel of the owner accepts messages of agents any more.")
        }
        NotifyError::NoChannel(there) => {
            ToolError::new("Unknown channel, or it does not accept messages of agents.")
                .hint(format!("Channels: {}.", there.join(", ")))
        }
        NotifyError::TooMany(most, wait) => ToolError {
            retry: true,
            ..ToolError::new(format!(
                "The limit of {most} messages an hour is reached; undelivered ones count. Try again in {wait} s. \
                 Nothing was sent."
            ))
        },
        NotifyError::Undelivered(channel, why) => ToolError {
            retry: !why.is_lasting(),
            ..ToolError::new(format!(
                "The channel {channel} did not deliver the message: {}.",
                why.shortly()
            ))
            .hint("The journal of gatewren has the details for the owner.")
        },
    }
}
