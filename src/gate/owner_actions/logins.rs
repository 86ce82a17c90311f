//! The owner's password and logins.

use serde_json::json;

use super::actor::{OwnerActor, OwnerCommand};
use crate::auth::{hash_password, make_owner_key, take_along};
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
    (vault, hand): (&Vault, &OwnerActor),
    password: &Secret,
    plan: KeyPlan,
) -> Result<(), String> {
    let stored = hash_password(password).map_err(|e| e.to_string())?;
    let key = vault.owner().key().map_err(|e| e.to_string())?;
    let change = match (plan, key) {
        (KeyPlan::Present(present), Some(key)) => {
            take_along(&key, &present, password).map_err(|e| format!("{e}; nothing was changed"))?
        }
        _ => KeyChange::New(make_owner_key(password).map_err(|e| e.to_string())?),
    };
    let set = async { vault.owner().set_password(stored, change).await };
    hand.recorded(vault, deed("owner set-password", None), set)
        .await
}

/// Returns how many calls have arguments that only the owner's current password can open.
pub fn sealed_calls(vault: &Vault) -> Result<u64, VaultError> {
    let key = vault.owner().key()?;
    key.map_or(Ok(0), |key| vault.owner().sealed_to(&key.id))
}

/// Signs out a login by its id; false if there is none.
pub async fn sign_out((vault, hand): (&Vault, &OwnerActor), id: &str) -> Result<bool, String> {
    let end = async {
        let ended = vault.logins().end_by_id(id).await?;
        Ok::<_, VaultError>((ended, if ended { "ok" } else { "refused" }))
    };
    hand.recorded_as(vault, deed("owner sign-out", Some(id)), end)
        .await
}

/// Signs the owner out everywhere; returns the number of logins.
pub async fn sign_out_everywhere((vault, hand): (&Vault, &OwnerActor)) -> Result<usize, String> {
    let end = async { vault.logins().end_owners().await };
    hand.recorded(vault, deed("owner sign-out", None), end)
        .await
}

fn deed<'a>(command: &'static str, target: Option<&'a str>) -> OwnerCommand<'a> {
    OwnerCommand {
        command,
        what: json!({}),
        target,
        change: None,
    }
}
