//! The pairing code of a client: a secret, the server's address, and the start of the server's pin.

use std::fmt;
use std::str::FromStr;

use gatewren_http_client::{Pin, PinPrefix};
use gatewren_portable::{Secret, from_letters, normalized_letters, to_letters};

/// Letters of the secret: 60 bits.
const SECRET: usize = 12;

/// Letters of the start of the pin: 80 bits.
const PIN: usize = 16;

/// Letters per group.
const GROUP: usize = 4;

/// The default port of gatewren.
const PORT: u16 = 8443;

/// A one-time code. The secret is sent only to a server whose pin starts as the code states.
#[derive(Debug, Clone)]
pub struct PairingCode {
    /// The secret that the server exchanges for a token.
    pub secret: Secret,
    /// The start of the server's pin.
    pub pin: PinPrefix,
    letters: Secret,
}

/// A code and its server, `CODE@HOST:PORT`.
#[derive(Debug, Clone)]
pub struct PairingLink {
    /// The code.
    pub code: PairingCode,
    /// The server as `HOST:PORT`; an IPv6 address is in brackets.
    pub host: String,
}

impl PairingCode {
    /// Returns the code for a secret and a server's pin.
    pub fn new(secret: &Secret, pin: &Pin) -> Option<Self> {
        let start = pin.bytes().get(..PinPrefix::SHORT).unwrap_or_default();
        format!("{}{}", secret.expose(), to_letters(start))
            .parse()
            .ok()
    }

    /// Returns the code in groups, as users see and type it.
    pub fn grouped_letters(&self) -> String {
        let letters: Vec<char> = self.letters.expose().chars().collect();
        let groups = letters.chunks(GROUP).map(String::from_iter);
        groups.collect::<Vec<_>>().join("-")
    }

    /// Returns the letters without separators.
    pub fn letters(&self) -> &str {
        self.letters.expose()
    }
}

/// The text is no code, or names no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPairingCode;

impl fmt::Display for InvalidPairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "use CODE@HOST or CODE@HOST:PORT, with a code of 28 letters and digits, as `gatewren pair` prints it",
        )
    }
}

impl std::error::Error for InvalidPairingCode {}

impl FromStr for PairingCode {
    type Err = InvalidPairingCode;

    fn from_str(typed: &str) -> Result<Self, InvalidPairingCode> {
        let letters: String = normalized_letters(typed).take(SECRET + PIN + 1).collect();
        let letters = Secret::new(letters);
        if letters.expose().len() != SECRET + PIN {
            return Err(InvalidPairingCode);
        }
        let parts = letters.expose().split_at_checked(SECRET);
        let (secret, pin) = parts.ok_or(InvalidPairingCode)?;
        let pin = from_letters(pin).and_then(|start| PinPrefix::of(&start));
        Ok(Self {
            // The server rejects a mistyped secret.
            secret: Secret::new(secret),
            pin: pin.ok_or(InvalidPairingCode)?,
            letters,
        })
    }
}

impl FromStr for PairingLink {
    type Err = InvalidPairingCode;

    fn from_str(text: &str) -> Result<Self, InvalidPairingCode> {
        let (code, host) = text.trim().rsplit_once('@').ok_or(InvalidPairingCode)?;
        Ok(Self {
            code: code.parse()?,
            host: with_port(host).ok_or(InvalidPairingCode)?,
        })
    }
}

/// Returns the host with its port; the default port is gatewren's.
pub fn with_port(host: &str) -> Option<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte);
    if host.is_empty() || !host.bytes().all(good) {
        return None;
    }
    // An IPv6 address, with or without brackets.
    if let Ok(address) = host.parse::<std::net::Ipv6Addr>() {
        return Some(format!("[{address}]:{PORT}"));
    }
    let port = host
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'));
    match port {
        Some((name, port)) if !name.is_empty() => {
            let port: u16 = port.parse().ok()?;
            Some(format!("{name}:{port}"))
        }
        Some(_) => None,
        None => Some(format!("{host}:{PORT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> Pin {
        "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
            .parse()
            .unwrap()
    }

    #[test]
    fn a_code_is_read_as_it_is_shown_and_as_it_is_typed() {
        let code = PairingCode::new(&Secret::new("ABCDEFGH1230"), &pin()).unwrap();
        assert_eq!(code.grouped_letters(), "ABCD-EFGH-1230-000G-40R4-0M30-E209");
        for typed in [
            code.grouped_letters(),
            code.grouped_letters().to_lowercase(),
            code.letters().to_owned(),
            code.grouped_letters()
                .replace('0', "o")
                .replace('1', "l")
                .replace('-', " "),
        ] {
            let read: PairingCode = typed.parse().unwrap();
            assert_eq!(read.secret, Secret::new("ABCDEFGH1230"), "{typed}");
            assert_eq!(read.pin, code.pin, "{typed}");
        }
        for bad in [
            "",
            "ABCD",
            &code.grouped_letters()[1..],
            &format!("{}A", code.grouped_letters()),
            &code.grouped_letters().replace('G', "U"),
        ] {
            assert!(bad.parse::<PairingCode>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_invitation_names_a_server() {
        let code = PairingCode::new(&Secret::new("ABCDEFGH1230"), &pin()).unwrap();
        for (host, expected) in [
            ("box.lan", "box.lan:8443"),
            ("box.lan:443", "box.lan:443"),
            ("192.168.1.2", "192.168.1.2:8443"),
            ("[fd00::1]:9", "[fd00::1]:9"),
            ("[fd00::1]", "[fd00::1]:8443"),
            ("fd00::1", "[fd00::1]:8443"),
        ] {
            let text = format!("{}@{host}", code.grouped_letters());
            assert_eq!(text.parse::<PairingLink>().unwrap().host, expected);
        }
        for bad in ["", "a/b", ":9", "box:99999", "box lan", "a@b"] {
            assert!(
                format!("{}@{bad}", code.grouped_letters())
                    .parse::<PairingLink>()
                    .is_err(),
                "{bad}"
            );
        }
        assert!(code.grouped_letters().parse::<PairingLink>().is_err());
    }
}
