//! The pin of a certificate: the SHA-256 of its public key, which identifies a server without an authority.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The SHA-256 of a certificate's public key with its algorithm (`SubjectPublicKeyInfo`), as in RFC 7469.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

/// A pin or the beginning of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinPrefix {
    bytes: [u8; 32],
    known: usize,
}

impl PinPrefix {
    /// The minimum length in bytes: finding a key with the same beginning of the pin takes 2^80 tries.
    pub const SHORT: usize = 10;

    /// Creates the beginning of a pin; `None` if it is shorter than `SHORT` or longer than a pin.
    pub fn of(start: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        let known = start.len();
        bytes.get_mut(..known)?.copy_from_slice(start);
        (known >= Self::SHORT).then_some(Self { bytes, known })
    }

    /// Whether a pin begins with this.
    pub fn begins(&self, pin: &Pin) -> bool {
        self.bytes.get(..self.known) == pin.0.get(..self.known)
    }
}

impl From<Pin> for PinPrefix {
    fn from(pin: Pin) -> Self {
        Self {
            bytes: pin.0,
            known: pin.0.len(),
        }
    }
}

/// A text that is not a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPin;

impl Pin {
    /// Computes the pin of a certificate in DER; `None` if it is not a certificate.
    pub fn of(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let hash = digest(&SHA256, certificate.public_key().raw);
        hash.as_ref().try_into().ok().map(Self)
    }

    /// The 32 bytes of the pin.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", STANDARD.encode(self.0))
    }
}

impl fmt::Display for InvalidPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a pin is sha256/ followed by 44 characters of base64, as `gatewren cert show` prints it",
        )
    }
}

impl std::error::Error for InvalidPin {}

impl FromStr for Pin {
    type Err = InvalidPin;

    /// Parses `sha256/…`, and `sha256//…` as curl writes it.
    fn from_str(text: &str) -> Result<Self, InvalidPin> {
        let text = text.trim().strip_prefix("sha256/").ok_or(InvalidPin)?;
        let text = text
            .strip_prefix('/')
            .filter(|_| text.len() == 45)
            .unwrap_or(text);
        let bytes = STANDARD.decode(text).map_err(|_| InvalidPin)?;
        bytes.try_into().map(Self).map_err(|_| InvalidPin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};

    #[test]
    fn a_pin_is_of_the_key_and_is_read_as_it_is_written() {
        let key = KeyPair::generate().unwrap();
        let made = |name: &str| {
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            params.self_signed(&key).unwrap().der().to_vec()
        };
        let pin = Pin::of(&made("a.lan")).unwrap();
        assert_eq!(Pin::of(&made("b.lan")), Some(pin));
        let expected = digest(&SHA256, &key.subject_public_key_info());
        assert_eq!(pin.bytes().as_slice(), expected.as_ref());
        let written = pin.to_string();
        assert_eq!(written.parse(), Ok(pin));
        assert_eq!(written.replace("sha256/", "sha256//").parse(), Ok(pin));
        for bad in ["", "sha256/", "sha1/AAAA", "sha256/AAAA", &written[7..]] {
            assert_eq!(bad.parse::<Pin>(), Err(InvalidPin), "{bad}");
        }
        assert_eq!(Pin::of(b"no certificate"), None);
    }

    #[test]
    fn the_beginning_of_a_pin_is_not_too_short() {
        let pin = Pin([7; 32]);
        for length in [10, 20, 32] {
            assert!(PinPrefix::of(&pin.0[..length]).unwrap().begins(&pin));
        }
        assert!(PinPrefix::from(pin).begins(&pin));
        let mut other = pin;
        other.0[9] = 8;
        assert!(!PinPrefix::of(&pin.0[..10]).unwrap().begins(&other));
        other = pin;
        other.0[31] = 8;
        assert!(!PinPrefix::from(pin).begins(&other));
        assert_eq!(PinPrefix::of(&[7; 9]), None);
        assert_eq!(PinPrefix::of(&[7; 33]), None);
    }
}
