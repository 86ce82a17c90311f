//! The owner's password and logins.

use super::owner_context::{OwnerCommand, OwnerContext};
use crate::auth::{hash_password, make_owner_key, rewrap_with_password};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{KeyChange, Vault, VaultError};

/// What happens to the owner's key when the password changes.
pub enum KeyPlan {
    /// The current password opens it, and the new one encrypts it again.
    Present(Secret),
    /// A new key replaces it: nothing is sealed to the old one, or the owner accepts the loss.
    Begin,
}

/// Sets the owner's password and signs the owner out everywhere.
pub async fn set_password(
    owner: &OwnerContext<'_>,
    password: &Secret,
    plan: KeyPlan,
) -> Result<(), String> {
    let stored = hash_password(password).map_err(|e| e.to_string())?;
    let key = owner.vault.owner().key().map_err(|e| e.to_string())?;
    let change = match (plan, key) {
        (KeyPlan::Present(present), Some(key)) => rewrap_with_password(&key, &present, password)
            .map_err(|e| format!("{e}; nothing was changed"))?,
        _ => KeyChange::New(make_owner_key(password).map_err(|e| e.to_string())?),
    };
    let set = async { owner.vault.owner().set_password(stored, change).await };
    let command = OwnerCommand::plain("owner set-password", None);
    owner.run_audited(command, set).await
}

/// Returns how many calls have arguments that only the owner's current password can open.
pub fn sealed_calls(vault: &Vault) -> Result<u64, VaultError> {
    let key = vault.owner().key()?;
    key.map_or(Ok(0), |key| vault.owner().sealed_to(&key.id))
}

/// Signs out a login by its id; false if there is none.
pub async fn sign_out(owner: &OwnerContext<'_>, id: &str) -> Result<bool, String> {
    let end = async {
        let found = owner.vault.logins().end_by_id(id).await?;
        Ok::<_, VaultError>((found, if found { "ok" } else { "refused" }))
    };
    let command = OwnerCommand::plain("owner sign-out", Some(id));
    owner.run_audited_as(command, end).await
}

/// Signs the owner out everywhere; returns the number of logins.
pub async fn sign_out_everywhere(owner: &OwnerContext<'_>) -> Result<usize, String> {
    let end = async { owner.vault.logins().end_owners().await };
    let command = OwnerCommand::plain("owner sign-out", None);
    owner.run_audited(command, end).await
}
