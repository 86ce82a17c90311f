//! The one-time code for setting the owner's first password in a browser.

use ring::digest::{SHA256, digest};

use gatewren_base::sys::{Secret, Zeroizing, normalized_letters, now_ms, random_letters};
use gatewren_store::vault::{Vault, VaultError};

/// The length of a code, in two groups: 50 bits. 50 guesses a minute cannot find it.
const LETTERS: usize = 10;

/// The lifetime of a code.
const GOOD_MS: u64 = 24 * 3_600_000;

/// Operations on codes.
pub(super) struct SetupCode;

impl SetupCode {
    /// Returns the hash to store. Case, separators and similar characters (O and 0) do not matter.
    pub(super) fn hash(typed: &str) -> [u8; 32] {
        // Bounds the work: twice the length of a code is enough to differ from any code.
        let mut text = Zeroizing::new(String::with_capacity(128));
        text.push_str("owner code ");
        text.extend(normalized_letters(typed).take(2 * LETTERS));
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        hash
    }
}

/// Makes a code that is valid for a day, and replaces an earlier one.
pub async fn make_code(vault: &Vault) -> Result<Secret, VaultError> {
    let letters = Zeroizing::new(random_letters::<LETTERS>()?);
    let (first, second) = letters.split_at(LETTERS / 2);
    let code = Secret::new(format!("{first}-{second}"));
    let until = now_ms().saturating_add(GOOD_MS);
    vault
        .owner()
        .store_code(SetupCode::hash(code.expose()), until)
        .await?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn a_code_is_good_however_it_is_typed_and_only_the_newest() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let first = make_code(&vault).await.unwrap();
        let second = make_code(&vault).await.unwrap();
        let good = |text: &str| vault.owner().is_code(SetupCode::hash(text)).unwrap();
        assert!(!good(first.expose()));
        assert!(good(second.expose()));
        assert!(good(&second.expose().to_lowercase().replace('-', " ")));
        assert!(good(&second.expose().replace('0', "o").replace('1', "l")));
        for bad in ["", "-", &format!("{}0", second.expose())] {
            assert!(!good(bad), "{bad}");
        }
    }
}
