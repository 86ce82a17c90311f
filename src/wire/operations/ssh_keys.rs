//! SSH public keys: parsing, fingerprints, and the keys that may log in.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass;
use gatewren_base::sys::is_hostile;

use super::operation_facts::{OperationFacts, changes, reads};
use super::text_type::text_type;

/// The maximum size of a key as text: an RSA key with 16384 bits takes about three thousand characters.
const MAX_BYTES: usize = 4096;

/// The maximum length of a comment, which helps people to distinguish keys.
const MAX_COMMENT_CHARS: usize = 128;

/// The minimum and maximum size of an RSA key in bits: sshd(8) accepts no shorter one, and a longer one has no
/// benefit.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=16384;

/// A public key in the form of `authorized_keys` (sshd(8)) without options: `ssh-ed25519 AAAA... comment`. Its blob
/// is of the stated type and complete, and nothing follows it (RFC 4253, section 6.6; RFC 5656; RFC 8709;
/// PROTOCOL.u2f of OpenSSH).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("maxLength" = MAX_BYTES))]
pub struct PublicKey {
    kind: String,
    blob: Vec<u8>,
    comment: String,
}

text_type!(
    /// `SHA256:` and the key's digest in base64, as `ssh-keygen -l` prints it.
    Fingerprint,
    { "pattern": "^SHA256:[A-Za-z0-9+/]{43}$" },
    |text| {
        let digest = text.strip_prefix("SHA256:");
        let digest = digest.and_then(|digest| STANDARD_NO_PAD.decode(digest).ok());
        digest.is_some_and(|digest| digest.len() == 32)
    },
    "a fingerprint is SHA256: and 43 characters, as ssh_key_list shows it"
);

/// An operation on SSH keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum SshKeyAction {
    /// Print the keys of all accounts, as a JSON list ([`SshAccount`]).
    List {},
    /// Authorize a key, and print the result ([`SshKeyChange`]).
    Add {
        /// The account: an entry of `helper.toml`; its only one when absent.
        #[serde(default)]
        account: Option<String>,
        /// The key.
        key: PublicKey,
    },
    /// Remove a key that was added this way, and print the result.
    Remove {
        /// The account: an entry of `helper.toml`; its only one when absent.
        #[serde(default)]
        account: Option<String>,
        /// The key's fingerprint.
        fingerprint: Fingerprint,
    },
}

/// Why a text is no valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidKey {
    /// Longer than any key, or more than one line.
    Form,
    /// An unsupported key type.
    Type,
    /// The middle field is not base64, or does not match the type.
    Blob,
    /// An RSA key with too few or too many bits.
    Bits,
    /// The comment is too long, or contains terminal control sequences.
    Comment,
}

/// The keys that may log in as one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SshAccount {
    /// The account, as `helper.toml` names it.
    pub account: String,
    /// Its file.
    pub path: String,
    /// The keys, in the order of the file.
    pub keys: Vec<SshKey>,
    /// The number of lines that could not be parsed as a key.
    pub unreadable_lines: u32,
    /// Why the file could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A key that may log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SshKey {
    /// `SHA256:` and the digest, as `ssh-keygen -l` prints it.
    pub fingerprint: String,
    /// The key's type, such as `ssh-ed25519`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The comment, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Whether it was added here and can be removed here; other keys are the owner's.
    pub managed: bool,
    /// Whether its line restricts its use, such as with `command=`.
    pub has_options: bool,
}

/// The result of adding or removing a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SshKeyChange {
    /// The account, as `helper.toml` names it.
    pub account: String,
    /// The key's fingerprint.
    pub fingerprint: String,
    /// Whether anything was changed: an existing key is not added again.
    pub changed: bool,
}

impl SshKeyAction {
    /// The facts of the operation: its row in the table.
    pub fn facts(&self) -> OperationFacts<'_> {
        match self {
            Self::List {} => reads("ssh_key_list", HelperClass::SshKeys),
            Self::Add { .. } => changes("ssh_key_add", HelperClass::SshKeys),
            Self::Remove { .. } => changes("ssh_key_remove", HelperClass::SshKeys),
        }
    }
}

impl PublicKey {
    /// Parses the key at the beginning of a line of `authorized_keys`, with any comment.
    pub fn of_line(line: &str) -> Option<Self> {
        let (kind, blob, comment) = words(line)?;
        let blob = STANDARD.decode(blob).ok()?;
        // For unsupported types, only the type inside the blob is compared with the stated one.
        let same = Reader(&blob).text() == Some(kind.as_bytes());
        let known = kind.len() <= 64 && kind.bytes().all(|b| b.is_ascii_graphic());
        (same && known).then(|| Self {
            kind: kind.to_owned(),
            blob,
            comment: comment.to_owned(),
        })
    }

    /// The key's type, such as `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The key's comment.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Returns the key's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        let digest = STANDARD_NO_PAD.encode(digest(&SHA256, &self.blob));
        Fingerprint(format!("SHA256:{digest}"))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = InvalidKey;

    fn try_from(text: String) -> Result<Self, InvalidKey> {
        // A file that holds a key ends with a line feed.
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.len() > MAX_BYTES || line.contains(['\n', '\r', '\0']) {
            return Err(InvalidKey::Form);
        }
        let (kind, encoded, comment) = words(line).ok_or(InvalidKey::Type)?;
        let fields = fields(kind).ok_or(InvalidKey::Type)?;
        let blob = STANDARD.decode(encoded).map_err(|_| InvalidKey::Blob)?;
        let mut reader = Reader(&blob);
        if reader.text() != Some(kind.as_bytes()) {
            return Err(InvalidKey::Blob);
        }
        for field in fields {
            field.read(&mut reader)?;
        }
        if !reader.0.is_empty() {
            return Err(InvalidKey::Blob);
        }
        let long = comment.chars().count() > MAX_COMMENT_CHARS;
        if long || comment.contains(|c: char| is_hostile(c) || c == '\t') {
            return Err(InvalidKey::Comment);
        }
        Ok(Self {
            kind: kind.to_owned(),
            blob,
            comment: comment.to_owned(),
        })
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// Splits a line into type, base64 and comment.
fn words(line: &str) -> Option<(&str, &str, &str)> {
    let (kind, rest) = line
        .trim_start_matches([' ', '\t'])
        .split_once([' ', '\t'])?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let (blob, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    Some((kind, blob, comment.trim_matches([' ', '\t'])))
}

/// A field of a key's blob.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// This number of bytes.
    Bytes(usize),
    /// This text.
    Text(&'static str),
    /// A number of any size.
    Number,
    /// A number that determines the key's size in bits.
    Modulus,
    /// An uncompressed point of a curve, with this number of bytes.
    Point(usize),
    /// The application of a security key, such as `ssh:`.
    Application,
}

/// The fields after the type in a key's blob; `None` for unsupported types: certificates, and DSA, which is weak.
fn fields(kind: &str) -> Option<&'static [Field]> {
    use Field::{Application, Bytes, Modulus, Number, Point, Text};
    Some(match kind {
        "ssh-ed25519" => &[Bytes(32)],
        "ssh-rsa" => &[Number, Modulus],
        "ecdsa-sha2-nistp256" => &[Text("nistp256"), Point(65)],
        "ecdsa-sha2-nistp384" => &[Text("nistp384"), Point(97)],
        "ecdsa-sha2-nistp521" => &[Text("nistp521"), Point(133)],
        "sk-ssh-ed25519@openssh.com" => &[Bytes(32), Application],
        "sk-ecdsa-sha2-nistp256@openssh.com" => &[Text("nistp256"), Point(65), Application],
        _ => return None,
    })
}

impl Field {
    fn read(self, reader: &mut Reader<'_>) -> Result<(), InvalidKey> {
        let bytes = reader.text().ok_or(InvalidKey::Blob)?;
        let is_positive = || bytes.first().is_some_and(|first| *first < 0x80);
        let good = match self {
            Self::Bytes(length) => bytes.len() == length,
            Self::Text(text) => bytes == text.as_bytes(),
            Self::Number => is_positive(),
            Self::Modulus => {
                // A leading zero byte marks the number as not negative.
                let digits = bytes.strip_prefix(&[0]).unwrap_or(bytes);
                if !RSA_BITS.contains(&(digits.len() * 8)) {
                    return Err(InvalidKey::Bits);
                }
                is_positive()
            }
            Self::Point(length) => bytes.len() == length && bytes.first() == Some(&4),
            Self::Application => bytes.starts_with(b"ssh:") && bytes.is_ascii(),
        };
        good.then_some(()).ok_or(InvalidKey::Blob)
    }
}

/// Reads length-prefixed texts (RFC 4251, section 5).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn text(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, STANDARD.encode(&self.blob))?;
        if !self.comment.is_empty() {
            write!(f, " {}", self.comment)?;
        }
        Ok(())
    }
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "a public key is one line of at most 4096 bytes",
            Self::Type => {
                "a public key begins with its type, without options: ssh-ed25519, ecdsa-sha2-nistp256, -384 or -521, \
                 ssh-rsa, or one of a security key (sk-)"
            }
            Self::Blob => "the second word is not the base64 of a key of this type",
            Self::Bits => "an RSA key has 2048 to 16384 bits",
            Self::Comment => "the comment is longer than 128 characters, or contains control characters",
        })
    }
}

impl std::error::Error for InvalidKey {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of `ssh-keygen -t ed25519`, with its fingerprint from `ssh-keygen -l`.
    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj";
    const FINGERPRINT: &str = "SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ";

    fn read(text: &str) -> Result<PublicKey, InvalidKey> {
        text.to_owned().try_into()
    }

    #[test]
    fn a_key_is_known_by_the_fingerprint_that_ssh_keygen_prints() {
        let key = read(&format!("{KEY} me@home\n")).unwrap();
        assert_eq!(key.fingerprint().to_string(), FINGERPRINT);
        assert_eq!(key.to_string(), format!("{KEY} me@home"));
        assert_eq!(
            PublicKey::of_line(KEY).unwrap().fingerprint(),
            key.fingerprint()
        );
        assert!(Fingerprint::try_from(FINGERPRINT.to_owned()).is_ok());
        for bad in ["", "SHA256:", "MD5:aa:bb", "SHA256:AAAA", "--help"] {
            assert!(Fingerprint::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_lines_and_what_is_no_key_are_refused() {
        let blob = KEY.split(' ').nth(1).unwrap();
        for (bad, why) in [
            (format!("command=\"id\" {KEY}"), InvalidKey::Type),
            (format!("restrict {KEY}"), InvalidKey::Type),
            (format!("{KEY} me\n{KEY}"), InvalidKey::Form),
            (format!("{KEY} me\rcommand"), InvalidKey::Form),
            (format!("{KEY} \u{1b}[2J"), InvalidKey::Comment),
            (format!("{KEY} {}", "x".repeat(129)), InvalidKey::Comment),
            (format!("{KEY}AAAA"), InvalidKey::Blob),
            (format!("ssh-rsa {blob}"), InvalidKey::Blob),
            (format!("ssh-dss {blob}"), InvalidKey::Type),
            (
                format!("ssh-ed25519-cert-v01@openssh.com {blob}"),
                InvalidKey::Type,
            ),
            (blob.to_owned(), InvalidKey::Type),
            ("ssh-ed25519 AAAA".to_owned(), InvalidKey::Blob),
            ("ssh-ed25519 ....".to_owned(), InvalidKey::Blob),
            (String::new(), InvalidKey::Type),
            ("x".repeat(5000), InvalidKey::Form),
        ] {
            assert_eq!(read(&bad), Err(why), "{bad}");
        }
        // The type inside the blob differs from the stated one.
        let mut inner = STANDARD.decode(blob).unwrap();
        inner[5] = b'S';
        let other = format!("ssh-ed25519 {}", STANDARD.encode(inner));
        assert_eq!(read(&other), Err(InvalidKey::Blob));
    }

    #[test]
    fn keys_of_rsa_are_of_a_size_that_is_of_use() {
        let key = |bytes: usize| {
            let mut blob = Vec::new();
            let modulus = [vec![0], vec![0xff; bytes]].concat();
            for part in [b"ssh-rsa".to_vec(), vec![1, 0, 1], modulus] {
                blob.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
                blob.extend(part);
            }
            read(&format!("ssh-rsa {}", STANDARD.encode(blob)))
        };
        assert_eq!(key(128), Err(InvalidKey::Bits));
        assert!(key(256).is_ok() && key(512).is_ok());
        assert_eq!(key(2100), Err(InvalidKey::Bits));
    }
}
