//! Recipients of mail. An address is safe as an argument of any mail program.

use std::fmt;
use std::str::FromStr;

use super::shape::List;

/// The list of recipients.
pub(super) const RECIPIENTS: List<Recipient> = List {
    entry: |text| text.parse().ok(),
    like: "an address such as \"me@example.org\", or a user of this server such as \"root\"",
    may_be_empty: true,
};

/// The maximum length of an address (RFC 5321, 4.5.3.1.3).
const MAX_BYTES: usize = 254;

/// A recipient's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient(String);

/// The error for a text that is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidRecipient;

impl FromStr for Recipient {
    type Err = InvalidRecipient;

    /// Accepts letters, digits and the punctuation of usual addresses; never an option, a list or a program.
    fn from_str(text: &str) -> Result<Self, InvalidRecipient> {
        let plain = |text: &str, more: &str| {
            let first = text.bytes().next();
            let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            first.is_some_and(|b| b.is_ascii_alphanumeric()) && text.chars().all(fits)
        };
        let good = match text.split_once('@') {
            Some((who, domain)) => plain(who, "._+-=") && plain(domain, ".-"),
            None => plain(text, "._-"),
        };
        let good = good && text.len() <= MAX_BYTES;
        good.then(|| Self(text.to_owned())).ok_or(InvalidRecipient)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_an_option_or_a_program() {
        for good in ["root", "me@example.org", "me+box=home@mail.example.org"] {
            assert_eq!(good.parse::<Recipient>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "-oQ/tmp",
            "@x",
            "a@",
            "a@b@c",
            "a@-b",
            "a, b",
            "|/bin/sh",
            "/tmp/x",
            "a b",
            "a@b\n",
            "\"a\"@b",
            "a;b",
            "<a@b>",
            ":include:/x",
        ] {
            assert!(bad.parse::<Recipient>().is_err(), "{bad:?}");
        }
    }
}
