//! Issues and revokes the token for the metrics.

use super::owner_context::{OwnerCommand, OwnerContext};
use crate::auth::mint_metrics_token;
use gatewren_base::sys::Secret;

/// Issues a new token for the metrics and revokes the previous one at once.
pub async fn renew_metrics_token(owner: &OwnerContext<'_>) -> Result<Secret, String> {
    let command = OwnerCommand::plain("metrics token", None);
    let mint = mint_metrics_token(owner.vault);
    owner.run_audited(command, mint).await
}

/// Revokes it; false if there was none.
pub async fn end_metrics_token(owner: &OwnerContext<'_>) -> Result<bool, String> {
    let command = OwnerCommand::plain("metrics revoke", None);
    let token = owner.vault.metrics_token();
    owner.run_audited(command, token.set(None)).await
}
