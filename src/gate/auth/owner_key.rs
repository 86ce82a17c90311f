//! The owner's key pair, encrypted with the owner's password: made, opened, and encrypted again for a new password.

use std::fmt;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use super::password::{PasswordError, argon2id, fresh};
use gatewren_base::sys::{Secret, Zeroizing, now_ms, random_bytes};
use gatewren_store::vault::{KeyChange, KeyPair, OpeningKey, OwnerKey, StoredPassword, WrappedKey};

/// Why the owner's key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKeyError {
    /// It does not open with this password.
    Wrong,
    /// The private half does not match the public half.
    Mismatch,
    /// Encryption failed, or the key could not be derived from the password.
    Password(PasswordError),
}

impl fmt::Display for OwnerKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong => f.write_str(
                "this password does not decrypt the owner's key: the password is wrong, or the key was altered",
            ),
            Self::Mismatch => f.write_str(
                "the owner's key in the vault was altered: its private half does not match its public half",
            ),
            Self::Password(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for OwnerKeyError {}

impl From<PasswordError> for OwnerKeyError {
    fn from(cause: PasswordError) -> Self {
        Self::Password(cause)
    }
}

/// Makes a key pair and encrypts its private half with `password`. Blocks for as long as argon2id takes.
pub fn make_owner_key(password: &Secret) -> Result<OwnerKey, PasswordError> {
    let KeyPair { public, private } = KeyPair::new().map_err(PasswordError::Random)?;
    Ok(OwnerKey {
        id: OwnerKey::id_of(&public),
        public,
        wrapped: wrap(&private, &public, password)?,
        created_ms: now_ms(),
        lost_ms: None,
    })
}

/// Decrypts the private half of a key. Blocks for as long as argon2id takes.
pub fn open_owner_key(key: &OwnerKey, password: &Secret) -> Result<OpeningKey, OwnerKeyError> {
    let wrapped = &key.wrapped;
    let stored = StoredPassword {
        salt: wrapped.salt.clone(),
        hash: Vec::new(),
        memory_kib: wrapped.memory_kib,
        passes: wrapped.passes,
        lanes: wrapped.lanes,
    };
    let cipher = cipher(password, &stored)?;
    let nonce = Nonce::try_assume_unique_for_key(&wrapped.nonce);
    let nonce = nonce.map_err(|_| OwnerKeyError::Wrong)?;
    let mut private = Zeroizing::new(wrapped.private.clone());
    let opened = cipher
        .open_in_place(nonce, Aad::from(&key.public), &mut private)
        .map_err(|_| OwnerKeyError::Wrong)?;
    let opened = OpeningKey::from_bytes(opened).ok_or(OwnerKeyError::Mismatch)?;
    if opened.public() == key.public && key.is_whole() {
        Ok(opened)
    } else {
        Err(OwnerKeyError::Mismatch)
    }
}

/// Encrypts the same key with another password. Blocks for as long as argon2id takes, twice.
pub fn rewrap_with_password(
    key: &OwnerKey,
    present: &Secret,
    next: &Secret,
) -> Result<KeyChange, OwnerKeyError> {
    let private = open_owner_key(key, present)?;
    Ok(KeyChange::Rewrapped {
        id: key.id.clone(),
        wrapped: wrap(&private, &key.public, next)?,
    })
}

/// Encrypts a private half, with the public half as associated data.
fn wrap(
    private: &OpeningKey,
    public: &[u8; 32],
    password: &Secret,
) -> Result<WrappedKey, PasswordError> {
    let stored = fresh()?;
    let nonce: [u8; 12] = random_bytes().map_err(PasswordError::Random)?;
    // Overwritten if it could not be encrypted.
    let mut encrypted = Zeroizing::new(private.to_bytes().to_vec());
    cipher(password, &stored)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(public),
            &mut *encrypted,
        )
        .map_err(|_| PasswordError::NotHashed)?;
    Ok(WrappedKey {
        salt: stored.salt,
        memory_kib: stored.memory_kib,
        passes: stored.passes,
        lanes: stored.lanes,
        nonce: nonce.to_vec(),
        private: std::mem::take(&mut *encrypted),
    })
}

fn cipher(password: &Secret, stored: &StoredPassword) -> Result<LessSafeKey, PasswordError> {
    let key = argon2id(password, stored).ok_or(PasswordError::NotHashed)?;
    let key = UnboundKey::new(&CHACHA20_POLY1305, &key).map_err(|_| PasswordError::NotHashed)?;
    Ok(LessSafeKey::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[test]
    fn a_key_opens_with_its_password_alone() {
        let key = make_owner_key(&secret("four words of mine")).unwrap();
        let opened = open_owner_key(&key, &secret("four words of mine")).unwrap();
        assert_eq!(opened.public(), key.public);
        let wrong = open_owner_key(&key, &secret("four words of yours"));
        assert_eq!(wrong.err(), Some(OwnerKeyError::Wrong));
        let other = make_owner_key(&secret("four words of mine")).unwrap();
        let swapped = OwnerKey {
            wrapped: other.wrapped,
            ..key
        };
        let swapped = open_owner_key(&swapped, &secret("four words of mine"));
        assert_eq!(swapped.err(), Some(OwnerKeyError::Wrong));
    }

    #[test]
    fn a_new_password_takes_the_key_along() {
        let (first, second) = (secret("four words of mine"), secret("other words of mine"));
        let key = make_owner_key(&first).unwrap();
        let before = open_owner_key(&key, &first).unwrap().to_bytes();
        let wrong = rewrap_with_password(&key, &second, &first);
        assert_eq!(wrong.err(), Some(OwnerKeyError::Wrong));
        let KeyChange::Rewrapped { id, wrapped } =
            rewrap_with_password(&key, &first, &second).unwrap()
        else {
            panic!("another key");
        };
        assert_eq!(id, key.id);
        let key = OwnerKey { wrapped, ..key };
        assert_eq!(open_owner_key(&key, &second).unwrap().to_bytes(), before);
        assert!(open_owner_key(&key, &first).is_err());
    }
}
