//! Sends agents' messages over the channels that are open to them.

use std::sync::Arc;

use tokio::time::Instant;

use super::allowance::MessageQuota;
use super::error::{DeliveryError, NotifyError};
use super::message::OwnerMessage;
use super::sender::deliver;
use gatewren_base::config::{Channel, LiveSettings, Settings};
use gatewren_host::backends::Mail;

/// Sends messages to the owner. Clones share the count of messages sent.
#[derive(Debug, Clone)]
pub struct NotificationSender {
    live: LiveSettings<Settings>,
    mail: Mail,
    allowance: Arc<MessageQuota>,
}

impl NotificationSender {
    /// Creates a sender with the settings in force, which sends mail through `mail`.
    pub fn new(live: LiveSettings<Settings>, mail: Mail) -> Self {
        Self {
            live,
            mail,
            allowance: Arc::default(),
        }
    }

    /// Returns whether there is a channel that agents may send to.
    pub fn is_open_to_agents(&self) -> bool {
        self.live
            .read(|settings| settings.notify.values().any(|channel| channel.agents))
    }

    /// Sends one of gatewren's own messages to a channel.
    pub async fn send_through(
        &self,
        channel: &Channel,
        message: &OwnerMessage,
    ) -> Result<(), DeliveryError> {
        deliver(&self.mail, channel, message).await.map(drop)
    }

    /// Sends an agent's message to the channel with this name, or to the first one by name, and returns its name.
    /// Each attempt counts towards the limit, delivered or not.
    pub async fn send(
        &self,
        agent: &str,
        channel: Option<&str>,
        message: &OwnerMessage,
    ) -> Result<String, NotifyError> {
        let settings = self.live.now();
        let mut open = settings.notify.iter().filter(|(_, one)| one.agents);
        let found = open.find(|(name, _)| channel.is_none_or(|asked| asked == name.as_str()));
        let Some((name, found)) = found else {
            let open = settings.notify.iter().filter(|(_, one)| one.agents);
            return Err(NotifyError::NoChannel(
                open.map(|(name, _)| name.clone()).collect(),
            ));
        };
        let most = settings.limits.agent_messages;
        let taken = self.allowance.take(agent, most, Instant::now());
        taken.map_err(|wait| NotifyError::TooMany(most, wait))?;
        match self.send_through(found, message).await {
            Ok(()) => {
                tracing::info!(agent, channel = name, "an agent's message was sent");
                Ok(name.clone())
            }
            Err(cause) => {
                tracing::warn!(%cause, agent, channel = name, "an agent's message was not sent");
                Err(NotifyError::Undelivered(name.clone(), cause))
            }
        }
    }
}
