//! The public keys of an identity provider (JSON Web Key Set, RFC 7517), and the verification of signatures.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use gatewren_base::sys::{FileError, files};

/// The maximum number of keys to read; further ones are ignored. Providers have two to four.
const MAX_KEYS: usize = 32;

/// The accepted signature algorithms (RFC 7518, 3.1). Others are rejected: `none` proves nothing, and `HS256` would
/// use the public key as a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

/// The usable keys of a set.
#[derive(Debug)]
pub struct KeySet(Vec<NamedKey>);

#[derive(Debug)]
struct NamedKey {
    id: Option<String>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
}

/// Why a key set is rejected.
#[derive(Debug)]
pub enum KeySetError {
    /// The file cannot be read.
    File(FileError),
    /// It is not the JSON of a key set.
    NotJson,
    /// It has no key for RS256 or ES256.
    NoKey,
}

impl fmt::Display for KeySetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(cause) => cause.fmt(f),
            Self::NotJson => f.write_str("it is not a JSON Web Key Set: {\"keys\": [...]}"),
            Self::NoKey => {
                f.write_str("it has no key that signs RS256 (RSA from 2048 bits) or ES256 (P-256)")
            }
        }
    }
}

impl std::error::Error for KeySetError {}

#[derive(Deserialize)]
struct KeySetJson {
    keys: Vec<Jwk>,
}

/// A key in the set. Other members are ignored.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// The maximum size of a set. A larger one is rejected; usual sets have a few thousand bytes.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// Reads a set from a file.
    pub fn read_file(path: &Path) -> Result<Self, KeySetError> {
        let json = files::read_bounded(path, Self::MAX_BYTES).map_err(KeySetError::File)?;
        Self::read(&json)
    }

    /// Parses a set. Keys of other types or for other purposes are ignored.
    pub fn read(json: &[u8]) -> Result<Self, KeySetError> {
        let listed: KeySetJson = serde_json::from_slice(json).map_err(|_| KeySetError::NotJson)?;
        let listed = listed.keys.into_iter().take(MAX_KEYS);
        let keys: Vec<NamedKey> = listed.filter_map(usable).collect();
        if keys.is_empty() {
            return Err(KeySetError::NoKey);
        }
        Ok(Self(keys))
    }

    /// Returns whether one of the keys made this signature. `None` if there is no key with this id and algorithm.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        // A token without a key id may be signed with any of the few keys.
        let fits = |known: &&NamedKey| {
            known.key.algorithm() == algorithm && (id.is_none() || known.id.as_deref() == id)
        };
        let mut keys = self.0.iter().filter(fits).peekable();
        keys.peek()?;
        Some(keys.any(|known| known.key.verify(message, signature)))
    }
}

impl Key {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message, signature)
                .is_ok(),
        }
    }
}

fn usable(jwk: Jwk) -> Option<NamedKey> {
    let for_signatures = jwk
        .purpose
        .as_deref()
        .is_none_or(|purpose| purpose == "sig");
    let is_for = |name: &str| for_signatures && jwk.alg.as_deref().is_none_or(|alg| alg == name);
    let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
    let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) if is_for("RS256") => Key::Rsa {
            n: unpadded(number(&jwk.n)?),
            e: unpadded(number(&jwk.e)?),
        },
        ("EC", Some("P-256")) if is_for("ES256") => {
            let (x, y) = (number(&jwk.x)?, number(&jwk.y)?);
            // RFC 7518, 6.2.1.2: the full length, including leading zeros.
            if x.len() != 32 || y.len() != 32 {
                return None;
            }
            Key::P256([&[4], &x[..], &y[..]].concat())
        }
        _ => return None,
    };
    Some(NamedKey { id: jwk.kid, key })
}

/// Removes leading zeros, which some providers write although they should not.
fn unpadded(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.into_iter().skip(zeros).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of usable keys, or the error.
    fn read(json: &str) -> Result<usize, String> {
        let set = KeySet::read(json.as_bytes()).map_err(|error| error.to_string())?;
        Ok(set.0.len())
    }

    #[test]
    fn only_keys_that_can_sign_are_taken() {
        let (x, y) = (
            URL_SAFE_NO_PAD.encode([1; 32]),
            URL_SAFE_NO_PAD.encode([2; 32]),
        );
        let good = format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","kid":"a"}}"#);
        let rsa = r#"{"kty":"RSA","n":"AQAB","e":"AQAB","alg":"RS256","use":"sig"}"#;
        assert_eq!(
            read(&format!(r#"{{"keys":[{good},{rsa}],"more":1}}"#)),
            Ok(2)
        );
        for bad in [
            r#"{"kty":"oct","k":"AAAA"}"#.to_owned(),
            r#"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#.to_owned(),
            good.replace("P-256", "P-384"),
            good.replace(&x, "AAAA"),
            good.replace(r#","kid""#, r#","use":"enc","kid""#),
            good.replace(r#","kid""#, r#","alg":"ES384","kid""#),
            rsa.replace("RS256", "PS256"),
            rsa.replace(r#""n":"AQAB","#, ""),
            rsa.replace(r#""n":"AQAB""#, r#""n":"A QAB""#),
        ] {
            assert_eq!(
                read(&format!(r#"{{"keys":[{bad}]}}"#)),
                Err(KeySetError::NoKey.to_string()),
                "{bad}"
            );
            assert_eq!(
                read(&format!(r#"{{"keys":[{bad},{good}]}}"#)),
                Ok(1),
                "{bad}"
            );
        }
        for bad in ["", "[]", "{}", r#"{"keys":{}}"#, "<html>"] {
            assert_eq!(read(bad), Err(KeySetError::NotJson.to_string()), "{bad}");
        }
        let many = vec![good; 2 * MAX_KEYS].join(",");
        assert_eq!(read(&format!(r#"{{"keys":[{many}]}}"#)), Ok(MAX_KEYS));
    }
}
