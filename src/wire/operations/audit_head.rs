//! The last audit row of the front at the time an operation was sent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// The last audit row that is safe from a power cut. The helper writes it into its own log, which the front cannot
/// change. Rows that are removed or rewritten later can thus be detected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawHead")]
pub struct AuditHead {
    seq: u64,
    sha256: String,
}

/// The head as received, not yet validated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHead {
    seq: u64,
    sha256: String,
}

impl AuditHead {
    /// Creates a head from the row number `seq` (1 or more) and its hash `sha256` (64 lowercase hexadecimal
    /// digits).
    ///
    /// # Errors
    /// [`InvalidAuditHead`] when the number or the hash is invalid.
    pub fn new(seq: u64, sha256: String) -> Result<Self, InvalidAuditHead> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if seq == 0 || sha256.len() != DIGITS || !sha256.bytes().all(is_digit) {
            return Err(InvalidAuditHead);
        }
        Ok(Self { seq, sha256 })
    }

    /// The row's number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The row's hash: 64 hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

impl TryFrom<RawHead> for AuditHead {
    type Error = InvalidAuditHead;

    fn try_from(raw: RawHead) -> Result<Self, InvalidAuditHead> {
        Self::new(raw.seq, raw.sha256)
    }
}

/// A row number or a hash that no audit row can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidAuditHead;

impl fmt::Display for InvalidAuditHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the head of an audit is a number from 1 and 64 lowercase hexadecimal digits")
    }
}

impl std::error::Error for InvalidAuditHead {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_is_no_number_and_hash_is_refused() {
        let hash = "0123456789abcdef".repeat(4);
        let read = |text: &str| serde_json::from_str::<AuditHead>(text);
        let good = read(&format!(r#"{{"seq":7,"sha256":"{hash}"}}"#)).unwrap();
        assert_eq!((good.seq(), good.sha256()), (7, hash.as_str()));
        for bad in [
            format!(r#"{{"seq":0,"sha256":"{hash}"}}"#),
            format!(r#"{{"seq":-1,"sha256":"{hash}"}}"#),
            format!(r#"{{"seq":7,"sha256":"{}"}}"#, hash.to_uppercase()),
            format!(r#"{{"seq":7,"sha256":"{hash}0"}}"#),
            format!(r#"{{"seq":7,"sha256":"{}\n"}}"#, &hash[1..]),
            format!(r#"{{"seq":7,"sha256":"{hash}","more":1}}"#),
            r#"{"seq":7}"#.to_owned(),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
