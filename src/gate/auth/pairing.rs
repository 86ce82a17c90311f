//! The one-time code with which a client fetches the token of a new agent.

use ring::digest::{SHA256, digest};

use super::bootstrap::AgentSpec;
use super::token::Token;
use gatewren_base::sys::{Secret, Zeroizing, normalized_letters, now_ms, random_letters};
use gatewren_store::vault::{Agent, NewAgent, Vault, VaultError};

/// The length of the secret part of a code: 60 bits, which cannot be guessed in its lifetime.
const PAIRING_LETTERS: usize = 12;

/// The lifetime of a code.
const PAIRING_MS: u64 = 5 * 60_000;

/// Stores an agent to add when a client presents the code. Returns the code and its expiry. `None` if the limit of
/// open codes is reached.
pub async fn open_pairing(
    vault: &Vault,
    admission: AgentSpec,
) -> Result<Option<(Secret, u64)>, VaultError> {
    let code = Secret::new(random_letters::<PAIRING_LETTERS>()?);
    let until = now_ms().saturating_add(PAIRING_MS);
    let agent = NewAgent {
        name: admission.name,
        // The token is made when the code is redeemed.
        token_sha256: [0; 32],
        preset: admission.policy.preset,
        overrides: admission.policy.overrides.to_text(),
        space: Some(admission.space),
        expires_ms: admission.expires_ms,
    };
    let kept = vault
        .pairings()
        .keep(hash(code.expose()), agent, until)
        .await?;
    Ok(kept.then_some((code, until)))
}

/// Returns the name of the agent of a code; `None` if the code is not valid.
pub fn name_of_pairing(vault: &Vault, code: &str) -> Result<Option<String>, VaultError> {
    vault.pairings().name_of(hash(code))
}

/// Adds the agent of a code and returns it with its token, which is not stored. `None` if the code is not valid, or
/// was just used.
pub async fn redeem_pairing(
    vault: &Vault,
    code: &str,
) -> Result<Option<(Agent, Secret)>, VaultError> {
    let (token, token_hash) = Token::mint()?;
    let pairings = vault.pairings();
    let made = pairings.redeem(hash(code), *token_hash.as_bytes()).await?;
    Ok(made.map(|agent| (agent, token)))
}

/// Returns the hash to store. Case, separators and similar characters (O and 0) do not matter.
fn hash(typed: &str) -> [u8; 32] {
    // Bounds the work: twice the length of a code is enough to differ from any code.
    let mut text = Zeroizing::new(String::with_capacity(128));
    text.push_str("pairing code ");
    text.extend(normalized_letters(typed).take(2 * PAIRING_LETTERS));
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    hash
}
