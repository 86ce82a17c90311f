//! Issues and revokes the token for the metrics.

use serde_json::json;

use super::actor::{OwnerActor, OwnerCommand};
use crate::auth::mint_metrics_token;
use gatewren_base::sys::Secret;
use gatewren_store::vault::Vault;

/// Issues a new token for the metrics and revokes the previous one at once.
pub async fn renew_metrics_token((vault, hand): (&Vault, &OwnerActor)) -> Result<Secret, String> {
    hand.recorded(vault, deed("metrics token"), mint_metrics_token(vault))
        .await
}

/// Revokes it; false if there was none.
pub async fn end_metrics_token((vault, hand): (&Vault, &OwnerActor)) -> Result<bool, String> {
    let door = vault.metrics_token();
    hand.recorded(vault, deed("metrics revoke"), door.set(None))
        .await
}

fn deed(command: &'static str) -> OwnerCommand<'static> {
    OwnerCommand {
        command,
        what: json!({}),
        target: None,
        change: None,
    }
}
