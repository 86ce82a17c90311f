//! The format of an agent's token, and the hash that is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

use gatewren_base::sys::{RandomError, Secret, Zeroizing, random_bytes};

/// The prefix of each token, by which people and scanners recognize one.
const PREFIX: &str = "gw_";

/// 32 random bytes in base64url.
const BODY_CHARS: usize = 43;

/// The checksum, which distinguishes a mistyped token from an unknown one without reading the vault.
const CHECKSUM_CHARS: usize = 6;

const LENGTH: usize = PREFIX.len() + BODY_CHARS + CHECKSUM_CHARS;

/// The SHA-256 of a token. Only this is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Returns the hash as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Returns whether a text is a complete token, neither mistyped nor cut off. Does not check that it is valid.
pub fn is_token(text: &str) -> bool {
    text.len() == LENGTH && Token::is_whole(text)
}

/// Operations on the tokens of agents.
pub struct Token;

impl Token {
    /// Makes a new token to show once, and the hash to store.
    pub fn mint() -> Result<(Secret, TokenHash), RandomError> {
        let random: Zeroizing<[u8; 32]> = Zeroizing::new(random_bytes()?);
        // A text that grows would leave copies behind.
        let mut text = String::with_capacity(LENGTH);
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(random.as_slice(), &mut text);
        text.push_str(&checksum(&text));
        let hash = sha256(&text);
        Ok((Secret::new(text), hash))
    }

    /// Returns the hash for a lookup. `None` if the text does not have the length of a token.
    pub(super) fn hash(text: &str) -> Option<TokenHash> {
        (text.len() == LENGTH).then(|| sha256(text))
    }

    /// Returns whether a text has the format of a token and the right checksum. Otherwise it was mistyped, cut off,
    /// or is something else.
    pub(super) fn is_whole(text: &str) -> bool {
        let Some((body, check)) = text.split_at_checked(PREFIX.len() + BODY_CHARS) else {
            return false;
        };
        let random = body.strip_prefix(PREFIX);
        let decoded = random.and_then(|random| URL_SAFE_NO_PAD.decode(random).ok());
        let decoded = decoded.map(Zeroizing::new);
        decoded.is_some_and(|bytes| bytes.len() == 32) && check == checksum(body)
    }
}

fn sha256(text: &str) -> TokenHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    TokenHash(hash)
}

fn checksum(body: &str) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(sha256(body).0);
    text.truncate(CHECKSUM_CHARS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_token_is_read_back_with_the_same_hash() {
        let (secret, hash) = Token::mint().unwrap();
        let text = secret.expose();
        assert_eq!(text.len(), 52);
        assert!(text.starts_with("gw_"));
        assert!(Token::is_whole(text));
        assert_eq!(Token::hash(text), Some(hash));
        let (other, _) = Token::mint().unwrap();
        assert_ne!(secret, other);
    }

    #[test]
    fn one_wrong_character_anywhere_is_noticed() {
        let (secret, hash) = Token::mint().unwrap();
        let text = secret.expose();
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let wrong = String::from_utf8(bytes).unwrap();
            assert!(!Token::is_whole(&wrong), "{at}");
            assert_ne!(Token::hash(&wrong), Some(hash), "{at}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let (secret, _) = Token::mint().unwrap();
        let text = secret.expose();
        let longer = format!("{text}A");
        let spaced = format!(" {text}");
        for bad in [
            "",
            "gw_",
            "ä",
            &text[..51],
            &longer,
            &spaced,
            &"ä".repeat(26),
            &"g".repeat(1 << 20),
        ] {
            assert!(!Token::is_whole(bad));
        }
    }
}
