//! Who may look at the metrics without being an agent: whoever holds the one token that is good for nothing else.

use super::error::AuthError;
use super::token::Token;
use crate::sys::Secret;
use crate::vault::{Vault, VaultError};

/// The holders of that token.
pub struct Scrapers(Vault);

impl Scrapers {
    /// Those whom a vault knows.
    pub fn new(vault: Vault) -> Self {
        Self(vault)
    }

    /// Whether this is the token. It is asked of the disk each time: a scrape comes every few seconds.
    pub fn knows(&self, bearer: &str) -> Result<bool, AuthError> {
        let Some(hash) = Token::hash(bearer) else {
            return Ok(false);
        };
        let known = self.0.metrics_token().hash().map_err(|cause| {
            tracing::error!(%cause, "the token of the metrics cannot be looked up");
            AuthError::Unavailable
        })?;
        // What is compared is hashes, so that the time it takes tells nothing of a token.
        Ok(known.is_some_and(|known| known == *hash.as_bytes()))
    }
}

/// A new token for the metrics, in the place of the one before; it is not kept.
pub async fn mint_metrics_token(vault: &Vault) -> Result<Secret, VaultError> {
    let (token, hash) = Token::mint()?;
    vault.metrics_token().set(Some(*hash.as_bytes())).await?;
    Ok(token)
}
