//! Warns the owner 30 days before an agent's token expires: one notification for each token.

use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::sys::{now_ms, rfc3339};
use gatewren_gate::owner_actions::expires_soon;
use gatewren_store::state::{Author, Notice, Notifications, State};
use gatewren_store::vault::{Vault, VaultError};

/// How often tokens are checked while no agent changes.
const CHECK_EVERY: Duration = Duration::from_hours(6);

/// Adds a warning for each token, while it runs.
pub async fn warn_of_expiring_tokens(vault: Vault, state: State) {
    let notifications = Notifications::new(state);
    let mut agents = vault.agents().changes();
    loop {
        agents.mark_unchanged();
        if let Err(cause) = check(&vault, &notifications).await {
            tracing::warn!(%cause, "cannot check for tokens that expire soon");
        }
        tokio::select! {
            changed = agents.changed() => if changed.is_err() { return },
            () = sleep(CHECK_EVERY) => {}
        }
    }
}

async fn check(vault: &Vault, notifications: &Notifications) -> Result<(), VaultError> {
    for agent in vault.agents().list()? {
        let Some(expires_ms) = expires_soon(&agent, now_ms()) else {
            continue;
        };
        // Recorded first: a crash in between loses one of the warnings, which doctor still has.
        if !vault.token_warnings().begin(&agent.id, expires_ms).await? {
            continue;
        }
        if let Err(cause) = notifications
            .add(&Author::observer(), notice(expires_ms))
            .await
        {
            tracing::warn!(%cause, "cannot store a notification");
        }
    }
    Ok(())
}

/// The notification does not name the agent: other agents may read it.
fn notice(expires_ms: u64) -> Notice {
    Notice {
        container: None,
        level: "warning",
        title: "an agent's token expires soon".to_owned(),
        message: format!(
            "The token of an agent expires at {}. gatewren doctor names the agent; gatewren agent edit NAME \
             --expires 365d keeps it valid.",
            rfc3339(expires_ms)
        ),
        change: None,
    }
}
