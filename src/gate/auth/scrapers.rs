//! Authenticates clients that only read the metrics, with a token that grants nothing else.

use super::error::AuthError;
use super::token::Token;
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Vault, VaultError};

/// The check of that token.
pub struct Scrapers(Vault);

impl Scrapers {
    /// Uses the token of a vault.
    pub fn new(vault: Vault) -> Self {
        Self(vault)
    }

    /// Returns whether this is the token. Each call reads the disk, because a scrape comes only every few seconds.
    pub fn knows(&self, bearer: &str) -> Result<bool, AuthError> {
        let Some(hash) = Token::hash(bearer) else {
            return Ok(false);
        };
        let known = self.0.metrics_token().hash().map_err(|cause| {
            tracing::error!(%cause, "the metrics token cannot be looked up");
            AuthError::Unavailable
        })?;
        // Hashes are compared, so the duration reveals nothing about the token.
        Ok(known.is_some_and(|known| known == *hash.as_bytes()))
    }
}

/// Makes a new token for the metrics and replaces the previous one. The token itself is not stored.
pub async fn mint_metrics_token(vault: &Vault) -> Result<Secret, VaultError> {
    let (token, hash) = Token::mint()?;
    vault.metrics_token().set(Some(*hash.as_bytes())).await?;
    Ok(token)
}
