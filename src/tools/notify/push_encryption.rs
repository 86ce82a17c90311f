//! Encrypts a Web Push message for one device (RFC 8291, with the content encoding of RFC 8188).

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The length of an uncompressed point of P-256.
pub const PUBLIC_KEY_BYTES: usize = 65;

/// The length of the secret that the device shares with the sender (RFC 8291, 3.2).
pub const AUTH_BYTES: usize = 16;

/// The longest message. A push service accepts a body of 4096 bytes (RFC 8291, 4).
pub const MAX_PLAINTEXT: usize = RECORD_BYTES as usize - HEADER_BYTES - 1 - 16;

/// The size of the only record, as the header states it.
const RECORD_BYTES: u32 = 4096;

/// Salt, record size, length of the key, and key.
const HEADER_BYTES: usize = SALT_BYTES + 4 + 1 + PUBLIC_KEY_BYTES;

const SALT_BYTES: usize = 16;

/// The delimiter of the last record (RFC 8188, 2).
const LAST_RECORD: u8 = 2;

/// The keys of a device, which its browser made for this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceKeys {
    /// Its public key: an uncompressed point of P-256.
    pub p256dh: Vec<u8>,
    /// The shared secret.
    pub auth: Vec<u8>,
}

impl DeviceKeys {
    /// Whether both have the right form. Whether the point is on the curve is checked at the first use.
    pub fn are_valid(&self) -> bool {
        self.p256dh.len() == PUBLIC_KEY_BYTES
            && self.p256dh.first() == Some(&4)
            && self.auth.len() == AUTH_BYTES
    }
}

/// Encrypts a message with a new key pair and salt. Fails if it is too long, or if the device's key is not a point
/// of the curve.
pub fn encrypt(device: &DeviceKeys, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let random = SystemRandom::new();
    let mut salt = [0; SALT_BYTES];
    random.fill(&mut salt)?;
    let private = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
    let public = private.compute_public_key()?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, &device.p256dh);
    agree_ephemeral(private, &theirs, |shared| {
        seal(device, message, public.as_ref(), shared, &salt)
    })?
}

/// Encrypts a message with the secret of both key pairs.
fn seal(
    device: &DeviceKeys,
    message: &[u8],
    public: &[u8],
    shared: &[u8],
    salt: &[u8; SALT_BYTES],
) -> Result<Vec<u8>, Unspecified> {
    if message.len() > MAX_PLAINTEXT {
        return Err(Unspecified);
    }
    let mut key_material = [0; 32];
    let info = [b"WebPush: info\0", device.p256dh.as_slice(), public];
    let secret = Salt::new(HKDF_SHA256, &device.auth).extract(shared);
    secret.expand(&info, HKDF_SHA256)?.fill(&mut key_material)?;
    let derived = Salt::new(HKDF_SHA256, salt).extract(&key_material);
    let key: [u8; 16] = derive(&derived, b"Content-Encoding: aes128gcm\0")?;
    let nonce: [u8; NONCE_LEN] = derive(&derived, b"Content-Encoding: nonce\0")?;
    let mut record = [message, &[LAST_RECORD]].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    // Each key encrypts one record, so the nonce of the first record is never used twice.
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
    let key_length = u8::try_from(public.len()).map_err(|_| Unspecified)?;
    let size = RECORD_BYTES.to_be_bytes();
    Ok([salt.as_slice(), &size, &[key_length], public, &record].concat())
}

/// The number of bytes to derive.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(from: &Prk, info: &[u8]) -> Result<[u8; N], Unspecified> {
    let mut derived = [0; N];
    from.expand(&[info], Length(N))?.fill(&mut derived)?;
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// The device of RFC 8291, appendix A.
    fn device() -> DeviceKeys {
        DeviceKeys {
            p256dh: bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            ),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        }
    }

    #[test]
    fn the_example_of_rfc_8291_appendix_a_is_byte_for_byte_the_same() {
        let public = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
        let message = b"When I grow up, I want to be a watermelon";
        let sealed = seal(&device(), message, &public, &shared, &salt).unwrap();
        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
                        AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(URL_SAFE_NO_PAD.encode(sealed), expected);
    }

    #[test]
    fn each_message_has_its_own_salt_and_key() {
        let first = encrypt(&device(), b"x").unwrap();
        let second = encrypt(&device(), b"x").unwrap();
        assert_eq!(first.len(), HEADER_BYTES + 1 + 1 + 16);
        assert_ne!(first[..SALT_BYTES], second[..SALT_BYTES]);
        assert_ne!(first[21..HEADER_BYTES], second[21..HEADER_BYTES]);
    }

    #[test]
    fn a_message_that_is_too_long_and_an_invalid_key_are_rejected() {
        let longest = vec![b'x'; MAX_PLAINTEXT];
        assert_eq!(encrypt(&device(), &longest).unwrap().len(), 4096);
        assert!(encrypt(&device(), &[longest, vec![b'x']].concat()).is_err());
        let mut off_the_curve = device();
        off_the_curve.p256dh[64] ^= 1;
        assert!(off_the_curve.are_valid());
        assert!(encrypt(&off_the_curve, b"x").is_err());
        for broken in [
            DeviceKeys {
                p256dh: vec![4; 64],
                ..device()
            },
            DeviceKeys {
                p256dh: vec![2; 65],
                ..device()
            },
            DeviceKeys {
                auth: vec![0; 15],
                ..device()
            },
        ] {
            assert!(!broken.are_valid());
        }
    }
}
