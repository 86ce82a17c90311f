//! Wireless networks whose passwords the owner lets be used, each in a file of root's own.

use std::fmt;
use std::str::FromStr;

use super::backup_target::straight;
use super::shape::List;

/// How they are read.
pub(super) const NETWORKS: List<WifiNetwork> = List {
    entry: |text| text.parse().ok(),
    like: "the name of a wireless network and the file with its password, such as \"Home: /root/wifi-home\"",
    may_be_empty: true,
};

/// The longest name of a network (IEEE 802.11, 9.4.2.2).
const SSID_BYTES: usize = 32;

/// The longest entry; a longer one is refused.
const MAX_BYTES: usize = 1024;

/// One network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WifiNetwork {
    /// Its name; the password goes to no other.
    pub ssid: String,
    /// The file whose one line is the password.
    pub file: String,
}

/// Why a text is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidNetwork;

impl FromStr for WifiNetwork {
    type Err = InvalidNetwork;

    /// Reads `NAME: /FILE`; the last `: ` divides them, for a name may have colons.
    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (ssid, file) = text.rsplit_once(": ").ok_or(InvalidNetwork)?;
        // In the file of the owner it stands in quotes.
        let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        let named = (1..=SSID_BYTES).contains(&ssid.len());
        if text.len() > MAX_BYTES || !named || !text.chars().all(plain) {
            return Err(InvalidNetwork);
        }
        let file = straight(file.trim()).ok_or(InvalidNetwork)?;
        let ssid = ssid.to_owned();
        Ok(Self { ssid, file })
    }
}

impl fmt::Display for WifiNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.ssid, self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_a_name_and_a_file() {
        for good in [
            "Home: /root/wifi",
            "a: b: /root/my wifi",
            "Caf\u{e9} #2: /x",
        ] {
            let network: WifiNetwork = good.parse().unwrap();
            assert_eq!(network.to_string(), good);
        }
        let long = format!("{}: /x", "a".repeat(33));
        for bad in [
            "",
            "Home",
            "Home:/x",
            ": /x",
            "Home: x",
            "Home: /",
            "Home: /a/../b",
            "a\"b: /x",
            "a\nb: /x",
            &long,
        ] {
            assert_eq!(bad.parse::<WifiNetwork>(), Err(InvalidNetwork), "{bad:?}");
        }
    }
}
