//! The one-time code with which a client fetches the token of an agent that its owner wants.

use ring::digest::{SHA256, digest};

use super::bootstrap::Admission;
use super::token::Token;
use crate::sys::{Secret, meant_letters, now_ms, random_letters};
use crate::vault::{Agent, NewAgent, Paired, Vault, VaultError};

/// Letters of the secret part of a code: 60 bits, of which guesses find nothing in its time.
const PAIRING_LETTERS: usize = 12;

/// So long a code is good.
const PAIRING_MS: u64 = 5 * 60_000;

/// Keeps an agent for whoever brings the code that comes back, with the time of its end. None if too many are open.
pub async fn open_pairing(
    vault: &Vault,
    admission: Admission,
) -> Result<Option<(Secret, u64)>, VaultError> {
    let code = random_letters::<PAIRING_LETTERS>()?;
    let until = now_ms().saturating_add(PAIRING_MS);
    let agent = NewAgent {
        name: admission.name,
        // It gets one when it comes to be.
        token_sha256: [0; 32],
        preset: admission.policy.preset,
        overrides: admission.policy.overrides.to_text(),
        space: Some(admission.space),
        expires_ms: admission.expires_ms,
    };
    let kept = vault.pairings().keep(hash(&code), agent, until).await?;
    Ok(kept.then(|| (Secret::new(code), until)))
}

/// The name of the agent that a code is for; none if it is not good.
pub fn name_of_pairing(vault: &Vault, code: &str) -> Result<Option<String>, VaultError> {
    vault.pairings().name_of(hash(code))
}

/// Makes the agent of a code, and its token, which is not kept. None if the code is not good, or was just used.
pub async fn redeem_pairing(
    vault: &Vault,
    code: &str,
) -> Result<Option<(Agent, Secret)>, VaultError> {
    let (token, token_hash) = Token::mint()?;
    let pairings = vault.pairings();
    match pairings.redeem(hash(code), *token_hash.as_bytes()).await? {
        Paired::Agent(agent) => Ok(Some((agent, token))),
        Paired::Unknown => Ok(None),
        Paired::TooManyAgents => Err(VaultError::TooManyAgents),
    }
}

/// What is kept of a code, however it was typed.
fn hash(typed: &str) -> [u8; 32] {
    // A longer text is no code; what it begins with says so too.
    let meant: String = meant_letters(typed).take(2 * PAIRING_LETTERS).collect();
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, format!("pairing code {meant}").as_bytes()).as_ref());
    hash
}
