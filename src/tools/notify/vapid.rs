//! Identifies this server to push services (VAPID, RFC 8292): a token that its key signs for each service.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// How long a token is valid. RFC 8292 allows 24 hours; the rest is for a clock that is wrong.
const VALID_SECONDS: u64 = 12 * 3600;

/// The key pair of this server.
pub struct VapidKey(EcdsaKeyPair);

impl VapidKey {
    /// Makes a new key in PKCS #8, as it is stored.
    pub fn generate() -> Result<Vec<u8>, Unspecified> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?;
        Ok(made.as_ref().to_vec())
    }

    /// Reads a stored key.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, Unspecified> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random);
        pair.map(Self).map_err(|_| Unspecified)
    }

    /// Returns the public key in Base64, as a browser takes it (`applicationServerKey`).
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// Returns the `Authorization` header for a push service. `audience` is its origin; `subject` a URL by which the
    /// service can reach the operator.
    pub fn authorization(
        &self,
        audience: &str,
        subject: &str,
        now_ms: u64,
    ) -> Result<String, Unspecified> {
        let expires = now_ms / 1000 + VALID_SECONDS;
        let header = json!({ "typ": "JWT", "alg": "ES256" }).to_string();
        let claims = json!({ "aud": audience, "exp": expires, "sub": subject }).to_string();
        let (header, claims) = (
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims),
        );
        let signed = format!("{header}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes())?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(format!(
            "vapid t={signed}.{signature}, k={}",
            self.public_key()
        ))
    }
}

impl fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VapidKey")
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_push_service_can_verify_the_token_and_for_whom_it_is() {
        let stored = VapidKey::generate().unwrap();
        let key = VapidKey::from_pkcs8(&stored).unwrap();
        let header = key
            .authorization("https://push.example", "https://box.lan:8443/owner", 5_000)
            .unwrap();
        let (token, public) = header.split_once(", k=").unwrap();
        let public = URL_SAFE_NO_PAD.decode(public).unwrap();
        assert_eq!((public.len(), public[0]), (65, 4));
        let token = token.strip_prefix("vapid t=").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let verify = |signed: &str| {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public);
            key.verify(signed.as_bytes(), &signature)
        };
        verify(signed).unwrap();
        assert!(verify(&format!("{signed}x")).is_err());
        let claims = signed.split_once('.').unwrap().1;
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let expected = json!({
            "aud": "https://push.example", "exp": 5 + 12 * 3600, "sub": "https://box.lan:8443/owner",
        });
        assert_eq!(claims, expected);
        let again = VapidKey::from_pkcs8(&stored).unwrap();
        assert_eq!(again.public_key(), key.public_key());
        assert!(VapidKey::from_pkcs8(b"no key").is_err());
    }
}
