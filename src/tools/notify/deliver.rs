//! Sends agents' messages over the channels that are open to them.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;

use super::allowance::MessageQuota;
use super::error::{DeliveryError, NotifyError};
use super::message::OwnerMessage;
use super::push_sender::push;
use super::sender::deliver;
use gatewren_base::config::{Channel, ChannelKind, LiveSettings, Settings};
use gatewren_host::backends::Mail;
use gatewren_store::vault::Vault;

/// Sends messages to the owner. Clones share the count of messages sent.
#[derive(Clone)]
pub struct NotificationSender {
    live: LiveSettings<Settings>,
    mail: Mail,
    vault: Vault,
    allowance: Arc<MessageQuota>,
}

impl NotificationSender {
    /// Creates a sender with the settings in force, which sends mail through `mail`, and Web Push to the devices in
    /// the vault.
    pub fn new(live: LiveSettings<Settings>, mail: Mail, vault: Vault) -> Self {
        Self {
            live,
            mail,
            vault,
            allowance: Arc::default(),
        }
    }

    /// Returns whether there is a channel that agents may send to.
    pub fn is_open_to_agents(&self) -> bool {
        self.live
            .read(|settings| settings.notify.values().any(|channel| channel.agents))
    }

    /// Sends a message to one of the [`super::targets`] of a channel, or to all if `target` is the channel's name.
    /// Returns the address of the server that accepted it, if there is one.
    pub async fn send_to(
        &self,
        target: &str,
        channel: &Channel,
        message: &OwnerMessage,
    ) -> Result<Option<IpAddr>, DeliveryError> {
        if channel.kind == ChannelKind::Push {
            let settings = self.live.now();
            return push(&self.vault, &settings, target, message).await;
        }
        deliver(&self.mail, channel, message).await
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
        match self.send_to(name, found, message).await {
            Ok(_) => {
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
