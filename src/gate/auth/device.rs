//! Device cookies: a browser in which the owner has signed in before is recognized, so other guesses do not delay
//! it.
//!
//! See OWASP's "Slow Down Online Guessing Attacks with Device Cookies". Such a cookie grants no access: guesses
//! with it are counted in a separate bucket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use gatewren_base::sys::{RandomError, Secret, random_bytes};

/// The lifetime of a cookie in seconds: 400 days, the maximum in browsers (RFC 6265bis, 5.5).
pub const DEVICE_COOKIE_S: u64 = 400 * 24 * 60 * 60;

const ID_BYTES: usize = 16;
const SEALED_BYTES: usize = ID_BYTES + 8;

/// The id of a browser that the owner has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DeviceId([u8; ID_BYTES]);

impl DeviceId {
    /// Makes the id for a login from the SHA-256 of its cookie: a signed-in owner has a separate bucket too.
    pub(super) fn of_login(sha256: &[u8; 32]) -> Self {
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&sha256[..ID_BYTES]);
        Self(id)
    }
}

/// The key that signs device cookies.
pub(super) struct DeviceKey(hmac::Key);

impl DeviceKey {
    /// The name of the key in the vault.
    pub(super) const NAME: &str = "owner_device";

    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Makes a cookie for this device, or for a new one. The time is in seconds since 1970.
    pub(super) fn mint(&self, device: Option<DeviceId>, now_s: u64) -> Result<Secret, RandomError> {
        let id = match device {
            Some(DeviceId(id)) => id,
            None => random_bytes()?,
        };
        let mut bytes = [id.as_slice(), &now_s.to_be_bytes()].concat();
        let seal = hmac::sign(&self.0, &bytes);
        bytes.extend_from_slice(seal.as_ref());
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the device of a cookie. `None` if the signature is invalid or the cookie has expired.
    pub(super) fn verify(&self, cookie: &str, now_s: u64) -> Option<DeviceId> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (sealed, seal) = bytes.split_at_checked(SEALED_BYTES)?;
        hmac::verify(&self.0, sealed, seal).ok()?;
        let (id, made_s) = sealed.split_at_checked(ID_BYTES)?;
        let made_s = u64::from_be_bytes(made_s.try_into().ok()?);
        let is_valid = now_s < made_s.saturating_add(DEVICE_COOKIE_S);
        is_valid.then_some(DeviceId(id.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_signed_and_not_long_ago_is_a_device() {
        let key = DeviceKey::new(&[7; 32]);
        let cookie = key.mint(None, 1_000).unwrap();
        let device = key.verify(cookie.expose(), 1_000).unwrap();
        assert_eq!(key.verify(cookie.expose(), 999), Some(device));
        let end = 1_000 + DEVICE_COOKIE_S;
        assert_eq!(key.verify(cookie.expose(), end - 1), Some(device));
        assert_eq!(key.verify(cookie.expose(), end), None);
        let renewed = key.mint(Some(device), end).unwrap();
        assert_eq!(key.verify(renewed.expose(), end), Some(device));
        assert_ne!(key.mint(None, 1_000).unwrap(), cookie);

        assert_eq!(
            DeviceKey::new(&[8; 32]).verify(cookie.expose(), 1_000),
            None
        );
        let text = cookie.expose();
        for at in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            // The last character has two unused bits, and the decoder rejects other values of them.
            assert_eq!(key.verify(&other, 1_000), None, "{at}");
        }
        for none in ["", "A", &text[1..], &text[..40], &"A".repeat(10_000)] {
            assert_eq!(key.verify(none, 1_000), None);
        }
    }
}
