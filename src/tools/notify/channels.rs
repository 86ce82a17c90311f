//! The owner's channels: those of the settings, and those of the owner's page: Web Push and an ntfy topic.

use gatewren_base::config::{Channel, ChannelKind, Channels, Settings};
use gatewren_store::vault::{Vault, VaultError};

/// The name of the channel for the devices, unless the settings have one of this kind.
pub const PUSH: &str = "push";

/// The name of the channel for the ntfy topic of the page, unless the settings have a channel of this name.
pub const PAGE_NTFY: &str = "ntfy";

/// Returns all channels. A channel of the settings wins over one of the page with the same name.
pub fn channels(settings: &Settings, vault: &Vault) -> Channels {
    let mut channels = settings.notify.clone();
    match of_page(vault) {
        Ok(found) => {
            let has_push = channels.values().any(|one| one.kind == ChannelKind::Push);
            for (name, channel) in found {
                if !(has_push && channel.kind == ChannelKind::Push) {
                    channels.entry(name.to_owned()).or_insert(channel);
                }
            }
        }
        Err(cause) => tracing::warn!(%cause, "cannot read the channels of the owner's page"),
    }
    channels
}

/// Returns where a message for a channel goes: to the channel itself, or to each device (`CHANNEL/DEVICE`). Each is
/// retried separately.
pub fn targets(vault: &Vault, name: &str, channel: &Channel) -> Vec<String> {
    if channel.kind != ChannelKind::Push {
        return vec![name.to_owned()];
    }
    let devices = vault.push_devices().list().unwrap_or_else(|cause| {
        tracing::warn!(%cause, "cannot read the devices");
        Vec::new()
    });
    let ids = devices.into_iter().map(|device| device.id);
    ids.map(|id| format!("{name}/{id}")).collect()
}

fn of_page(vault: &Vault) -> Result<Vec<(&'static str, Channel)>, VaultError> {
    let table = vault.push_devices();
    let mut found = Vec::new();
    if !table.list()?.is_empty() {
        found.push((PUSH, Channel::push()));
    }
    // It was checked when it was stored.
    let ntfy = table.ntfy()?;
    let ntfy = ntfy.and_then(|ntfy| Channel::ntfy(&ntfy.url, &ntfy.topic).ok());
    found.extend(ntfy.map(|channel| (PAGE_NTFY, channel)));
    Ok(found)
}
