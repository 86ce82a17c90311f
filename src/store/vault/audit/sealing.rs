//! Sealing to a public key: HPKE (RFC 9180), base mode, with X25519, HKDF-SHA256 and `ChaCha20Poly1305`.

use std::convert::Infallible;
use std::fmt;

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, Kem as _, OpModeR, OpModeS, Serializable as _};

use crate::vault::agents::keys::SecretKey;
use gatewren_base::sys::{RandomError, random_bytes};

type Kem = X25519HkdfSha256;

/// The private half of a key pair.
pub struct OpeningKey(<Kem as hpke::Kem>::PrivateKey);

/// A new key pair.
pub struct KeyPair {
    /// The public half, which seals: 32 bytes.
    pub public: [u8; 32],
    /// The private half, which opens.
    pub private: OpeningKey,
}

/// A sealed text.
pub(in crate::vault) struct SealedText {
    /// The encapsulated key: 32 bytes.
    pub encapsulated: Vec<u8>,
    /// The ciphertext: 16 bytes longer than the text.
    pub sealed: Vec<u8>,
}

/// Why sealing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vault) enum SealError {
    /// The public key is invalid.
    Key,
    /// The kernel returned no random bytes.
    Random(RandomError),
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str(
                "the owner's public key in the vault is invalid; set the password again with gatewren owner \
                 set-password",
            ),
            Self::Random(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for SealError {}

impl KeyPair {
    /// Makes a new key pair from the kernel's random bytes.
    pub fn new() -> Result<Self, RandomError> {
        let random = SecretKey::new(random_bytes()?);
        let (private, public) = Kem::derive_keypair(random.as_slice());
        Ok(Self {
            public: public.to_bytes().into(),
            private: OpeningKey(private),
        })
    }
}

impl OpeningKey {
    /// Makes the key from its 32 bytes. Returns `None` if they are not a key.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        <Kem as hpke::Kem>::PrivateKey::from_bytes(bytes)
            .ok()
            .map(Self)
    }

    /// Returns the bytes.
    pub fn to_bytes(&self) -> SecretKey {
        SecretKey::new(self.0.to_bytes().into())
    }

    /// Returns the public half.
    pub fn public(&self) -> [u8; 32] {
        Kem::sk_to_pk(&self.0).to_bytes().into()
    }

    /// Opens a text that was sealed to this key with the same `info` and `bound`; otherwise returns `None`.
    pub(in crate::vault) fn open(
        &self,
        info: &[u8],
        bound: &[u8],
        text: &SealedText,
    ) -> Option<Vec<u8>> {
        let encapsulated = <Kem as hpke::Kem>::EncappedKey::from_bytes(&text.encapsulated).ok()?;
        hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, Kem>(
            &OpModeR::Base,
            &self.0,
            &encapsulated,
            info,
            &text.sealed,
            bound,
        )
        .ok()
    }
}

/// Seals a text to a public key. Opening it needs the same `info` and `bound`, which the sealed text does not
/// contain.
pub(in crate::vault) fn seal(
    public: &[u8; 32],
    info: &[u8],
    bound: &[u8],
    text: &[u8],
) -> Result<SealedText, SealError> {
    let public = <Kem as hpke::Kem>::PublicKey::from_bytes(public).map_err(|_| SealError::Key)?;
    let mut random = KernelRandom(None);
    let sealed = hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeS::Base,
        &public,
        info,
        text,
        bound,
        &mut random,
    );
    // Checked first: after a failure the result was made without random bytes.
    if let Some(failed) = random.0 {
        return Err(SealError::Random(failed));
    }
    let (encapsulated, sealed) = sealed.map_err(|_| SealError::Key)?;
    Ok(SealedText {
        encapsulated: encapsulated.to_bytes().to_vec(),
        sealed,
    })
}

/// An infallible random source for the library, backed by the kernel. It records a failure, which the caller
/// checks.
struct KernelRandom(Option<RandomError>);

impl KernelRandom {
    fn draw<const N: usize>(&mut self) -> [u8; N] {
        random_bytes().unwrap_or_else(|failed| {
            self.0 = Some(failed);
            [0; N]
        })
    }
}

impl TryRng for KernelRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_ne_bytes(self.draw()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_ne_bytes(self.draw()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(32) {
            let random: [u8; 32] = self.draw();
            for (byte, random) in part.iter_mut().zip(random) {
                *byte = random;
            }
        }
        Ok(())
    }
}

impl TryCryptoRng for KernelRandom {}

#[cfg(test)]
mod tests {
    use super::super::sealing::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().collect();
        let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    #[test]
    fn a_sealed_text_opens_with_its_own_key_and_its_own_place_alone() {
        let (ours, others) = (KeyPair::new().unwrap(), KeyPair::new().unwrap());
        let text = seal(&ours.public, b"info", b"row 7", b"hunter2").unwrap();
        assert!(!text.sealed.windows(7).any(|part| part == b"hunter2"));
        let open = |key: &KeyPair, info: &[u8], bound: &[u8]| key.private.open(info, bound, &text);
        assert_eq!(open(&ours, b"info", b"row 7").unwrap(), b"hunter2");
        assert_eq!(open(&ours, b"info", b"row 8"), None);
        assert_eq!(open(&ours, b"other", b"row 7"), None);
        assert_eq!(open(&others, b"info", b"row 7"), None);
        for at in 0..text.sealed.len() {
            let mut sealed = text.sealed.clone();
            sealed[at] ^= 1;
            let encapsulated = text.encapsulated.clone();
            let text = SealedText {
                encapsulated,
                sealed,
            };
            assert_eq!(
                ours.private.open(b"info", b"row 7", &text),
                None,
                "byte {at}"
            );
        }
        let again = seal(&ours.public, b"info", b"row 7", b"hunter2").unwrap();
        assert_ne!(
            again.sealed, text.sealed,
            "equal texts are sealed differently"
        );
    }

    #[test]
    fn a_private_half_gives_its_public_one() {
        let pair = KeyPair::new().unwrap();
        let again = OpeningKey::from_bytes(pair.private.to_bytes().as_slice()).unwrap();
        assert_eq!(again.public(), pair.public);
        assert!(OpeningKey::from_bytes(&[7; 31]).is_none());
    }

    #[test]
    fn a_key_that_gives_no_secret_is_refused() {
        // The point of order 1, which gives no shared secret.
        assert_eq!(seal(&[0; 32], b"", b"", b"x").err(), Some(SealError::Key));
    }

    /// The test vector of RFC 9180, appendix A.2.1.
    #[test]
    fn it_is_hpke_as_others_know_it() {
        let key = "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb";
        let encapsulated = "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a";
        let info = "4f6465206f6e2061204772656369616e2055726e";
        let sealed = "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28";
        let text = SealedText {
            encapsulated: bytes(encapsulated),
            sealed: bytes(sealed),
        };
        let key = OpeningKey::from_bytes(&bytes(key)).unwrap();
        let opened = key
            .open(&bytes(info), &bytes("436f756e742d30"), &text)
            .unwrap();
        assert_eq!(opened, b"Beauty is truth, truth beauty");
    }
}
