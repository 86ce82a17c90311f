//! Trims the audit to the age and size of the settings.

use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::config::LiveSettings;
use gatewren_store::vault::{AuditRetention, Vault};

/// How often the audit is checked.
const LOOK: Duration = Duration::from_hours(1);

/// The pause between two trims, if one was not enough: calls are written in between.
const BREATH: Duration = Duration::from_millis(200);

/// Trims the audit from its oldest end, while the server runs.
pub async fn keep(vault: Vault, mut live: LiveSettings) {
    loop {
        live.mark_unchanged();
        let retention = live.read(|settings| AuditRetention {
            age: settings.audit.keep,
            rows: settings.audit.keep_rows.into(),
        });
        let more = match vault.audit().trim(retention).await {
            Ok(trimmed) if trimmed.rows > 0 => {
                tracing::info!(
                    rows = trimmed.rows,
                    "the oldest calls were trimmed from the audit"
                );
                trimmed.more
            }
            Ok(_) => false,
            Err(cause) => {
                tracing::error!(%cause, "cannot trim the audit");
                false
            }
        };
        tokio::select! {
            () = sleep(if more { BREATH } else { LOOK }) => {}
            () = live.changed() => {}
        }
    }
}
