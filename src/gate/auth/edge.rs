//! Validates the identity token of a proxy (JSON Web Token, RFC 7519).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::jwks::{Algorithm, KeySet};
use gatewren_base::sys::now_ms;

/// The tolerated difference between the provider's clock and ours.
const LEEWAY_S: f64 = 30.0;

/// The maximum length of a token. A longer one is rejected unread; usual tokens have one or two thousand bytes.
const MAX_BYTES: usize = 8 * 1024;

/// The required claims.
#[derive(Debug, Clone)]
pub struct EdgeRules {
    /// The required audience: one of `aud`.
    pub audience: String,
    /// The required issuer: `iss`.
    pub issuer: String,
}

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeError {
    /// It is not a token.
    Malformed,
    /// Its signature algorithm is not accepted.
    Algorithm,
    /// Its key is unknown.
    UnknownKey,
    /// Its signature does not match the key.
    Forged,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// It has another audience.
    Audience,
    /// It has another issuer.
    Issuer,
}

impl fmt::Display for EdgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not a signed JSON Web Token",
            Self::Algorithm => "it is not signed with RS256 or ES256",
            Self::UnknownKey => "its signing key is not one of the identity provider's keys",
            Self::Forged => "its signature is invalid",
            Self::Expired => "it has expired; sign in at the identity provider again",
            Self::NotYet => "it is not valid yet; check the clocks",
            Self::Audience => "its audience is another application",
            Self::Issuer => "its issuer is another identity provider",
        })
    }
}

impl std::error::Error for EdgeError {}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Lists extensions that the recipient must understand (RFC 7515, 4.1.11); we support none.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
    iss: String,
    aud: Audience,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl EdgeRules {
    /// Validates a token: first its signature, then its claims.
    pub fn check(&self, token: &str, keys: &KeySet) -> Result<(), EdgeError> {
        self.check_at(token, keys, now_ms() / 1000)
    }

    /// `now_s` is in seconds since 1970.
    fn check_at(&self, token: &str, keys: &KeySet, now_s: u64) -> Result<(), EdgeError> {
        let malformed = EdgeError::Malformed;
        if token.len() > MAX_BYTES {
            return Err(malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(malformed)?;
        let header: Header = part(header).ok_or(malformed)?;
        let algorithm = match (header.alg.as_str(), header.crit) {
            ("RS256", None) => Algorithm::Rs256,
            ("ES256", None) => Algorithm::Es256,
            _ => return Err(EdgeError::Algorithm),
        };
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed)?;
        let id = header.kid.as_deref();
        match keys.verify(algorithm, id, signed.as_bytes(), &signature) {
            None => return Err(EdgeError::UnknownKey),
            Some(false) => return Err(EdgeError::Forged),
            Some(true) => {}
        }
        self.check_claims(&part(claims).ok_or(malformed)?, now_s)
    }

    fn check_claims(&self, claims: &Claims, now_s: u64) -> Result<(), EdgeError> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "f64 is exact up to 2^53 seconds"
        )]
        let now = now_s as f64;
        let for_us = match &claims.aud {
            Audience::One(one) => *one == self.audience,
            Audience::Several(all) => all.contains(&self.audience),
        };
        if claims.exp + LEEWAY_S <= now {
            Err(EdgeError::Expired)
        } else if claims.nbf.is_some_and(|nbf| nbf - LEEWAY_S > now) {
            Err(EdgeError::NotYet)
        } else if !for_us {
            Err(EdgeError::Audience)
        } else if claims.iss != self.issuer {
            Err(EdgeError::Issuer)
        } else {
            Ok(())
        }
    }
}

/// Decodes one of the first two parts: JSON in base64url.
fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    let json = URL_SAFE_NO_PAD.decode(text).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
        RsaPublicKeyComponents,
    };
    use serde_json::{Value, json};

    use super::*;
    use gatewren_base::sys::skip;

    const NOW: u64 = 1_800_000_000;

    enum Signer {
        P256(EcdsaKeyPair),
        Rsa(RsaKeyPair),
    }

    impl Signer {
        fn p256() -> Self {
            let (random, way) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(way, &random).unwrap();
            Self::P256(EcdsaKeyPair::from_pkcs8(way, pkcs8.as_ref(), &random).unwrap())
        }

        /// Makes an RSA key with openssl, because ring cannot. Returns `None` if openssl is not installed.
        fn rsa() -> Option<Self> {
            let arguments = ["genpkey", "-algorithm", "RSA", "-outform", "DER"];
            let made = std::process::Command::new("openssl")
                .args(arguments)
                .output();
            let Ok(made) = made else {
                skip("openssl is not installed");
                return None;
            };
            // Versions of openssl differ in the format of the DER output.
            let pair = RsaKeyPair::from_der(&made.stdout);
            let pair = pair.or_else(|_| RsaKeyPair::from_pkcs8(&made.stdout));
            Some(Self::Rsa(pair.unwrap()))
        }

        fn jwk(&self, kid: &str) -> Value {
            let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            match self {
                Self::P256(pair) => {
                    let point = pair.public_key().as_ref();
                    json!({ "kty": "EC", "crv": "P-256", "kid": kid,
                            "x": text(&point[1..33]), "y": text(&point[33..]) })
                }
                Self::Rsa(pair) => {
                    let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                    json!({ "kty": "RSA", "kid": kid, "e": text(&public.e), "n": text(&public.n) })
                }
            }
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", text(header), text(claims));
            let random = SystemRandom::new();
            let signature = match self {
                Self::P256(pair) => pair
                    .sign(&random, signed.as_bytes())
                    .unwrap()
                    .as_ref()
                    .to_vec(),
                Self::Rsa(pair) => {
                    let mut bytes = vec![0; pair.public().modulus_len()];
                    pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut bytes)
                        .unwrap();
                    bytes
                }
            };
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn keys(listed: &[Value]) -> KeySet {
        KeySet::read(json!({ "keys": listed }).to_string().as_bytes()).unwrap()
    }

    fn claims() -> Value {
        json!({ "exp": NOW + 60, "nbf": NOW - 60, "iss": "https://idp", "aud": ["other", "gatewren"] })
    }

    fn check(token: &str, keys: &KeySet) -> Result<(), EdgeError> {
        let rules = EdgeRules {
            audience: "gatewren".to_owned(),
            issuer: "https://idp".to_owned(),
        };
        rules.check_at(token, keys, NOW)
    }

    #[test]
    fn what_a_token_says_must_hold() {
        let signer = Signer::p256();
        let set = keys(&[signer.jwk("a")]);
        let header = json!({ "alg": "ES256", "kid": "a" });
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            check(&signer.sign(&header, &claims), &set)
        };
        assert_eq!(with("x", json!(1)), Ok(()));
        assert_eq!(with("aud", json!("gatewren")), Ok(()));
        assert_eq!(with("exp", json!(NOW - 29)), Ok(()), "the leeway");
        assert_eq!(with("nbf", json!(NOW + 30)), Ok(()), "the leeway");
        assert_eq!(with("exp", json!(NOW - 30)), Err(EdgeError::Expired));
        assert_eq!(with("nbf", json!(NOW + 31)), Err(EdgeError::NotYet));
        assert_eq!(with("aud", json!("gatewren2")), Err(EdgeError::Audience));
        assert_eq!(with("aud", json!([])), Err(EdgeError::Audience));
        assert_eq!(with("iss", json!("https://idp/")), Err(EdgeError::Issuer));
        for (name, value) in [
            ("exp", Value::Null),
            ("exp", json!("soon")),
            ("iss", Value::Null),
            ("aud", json!(5)),
        ] {
            assert_eq!(with(name, value), Err(EdgeError::Malformed), "{name}");
        }
    }

    #[test]
    fn only_a_signature_of_the_named_key_counts() {
        let (signer, other) = (Signer::p256(), Signer::p256());
        let set = keys(&[signer.jwk("a"), other.jwk("b")]);
        let sign = |header: Value| check(&signer.sign(&header, &claims()), &set);
        assert_eq!(sign(json!({ "alg": "ES256", "kid": "a" })), Ok(()));
        assert_eq!(sign(json!({ "alg": "ES256" })), Ok(()), "any of them");
        assert_eq!(
            sign(json!({ "alg": "ES256", "kid": "b" })),
            Err(EdgeError::Forged)
        );
        assert_eq!(
            sign(json!({ "alg": "ES256", "kid": "c" })),
            Err(EdgeError::UnknownKey)
        );
        assert_eq!(
            sign(json!({ "alg": "RS256", "kid": "a" })),
            Err(EdgeError::UnknownKey)
        );
        let critical = json!({ "alg": "ES256", "kid": "a", "crit": ["exp"] });
        assert_eq!(sign(critical), Err(EdgeError::Algorithm));
        for alg in ["none", "None", "HS256", "ES384", "PS256", "EdDSA", ""] {
            assert_eq!(
                sign(json!({ "alg": alg, "kid": "a" })),
                Err(EdgeError::Algorithm),
                "{alg}"
            );
        }
    }

    #[test]
    fn a_token_that_was_altered_does_not_count() {
        let signer = Signer::p256();
        let set = keys(&[signer.jwk("a")]);
        let token = signer.sign(&json!({ "alg": "ES256", "kid": "a" }), &claims());
        assert_eq!(check(&token, &set), Ok(()));
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(bytes).unwrap();
            assert!(check(&altered, &set).is_err(), "{at}");
        }
        let unsigned = token.rsplit_once('.').unwrap().0;
        for bad in [
            unsigned.to_owned(),
            format!("{unsigned}."),
            format!("{token}.x"),
            "..".to_owned(),
            String::new(),
            "ä.ä.ä".to_owned(),
            format!("{token}="),
        ] {
            assert!(check(&bad, &set).is_err(), "{bad}");
        }
        let mut long = claims();
        long["x"] = json!("x".repeat(MAX_BYTES));
        let long = signer.sign(&json!({ "alg": "ES256", "kid": "a" }), &long);
        assert_eq!(check(&long, &set), Err(EdgeError::Malformed));
    }

    #[test]
    fn rsa_counts_too_and_its_public_key_is_no_secret_to_sign_with() {
        let Some(signer) = Signer::rsa() else { return };
        let set = keys(&[signer.jwk("r"), Signer::p256().jwk("r")]);
        let token = signer.sign(&json!({ "alg": "RS256", "kid": "r" }), &claims());
        assert_eq!(check(&token, &set), Ok(()));
        let forged = signer.sign(&json!({ "alg": "ES256", "kid": "r" }), &claims());
        assert_eq!(check(&forged, &set), Err(EdgeError::Forged));
    }
}
