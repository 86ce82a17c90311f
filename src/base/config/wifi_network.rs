//! Wireless networks with passwords in files that belong to root.

use std::fmt;
use std::str::FromStr;

use super::backup_target::normalize_path;
use super::shape::List;

/// The list of networks.
pub(super) const NETWORKS: List<WifiCredentials> = List {
    entry: |text| text.parse().ok(),
    like: "the name of a wireless network and the file with its password, such as \"Home: /root/wifi-home\"",
    may_be_empty: true,
};

/// The maximum length of a network's name (IEEE 802.11, 9.4.2.2).
const SSID_BYTES: usize = 32;

/// The maximum length of an entry. A longer one is rejected.
const MAX_BYTES: usize = 1024;

/// A wireless network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WifiCredentials {
    /// The name. The password is used for no other network.
    pub ssid: String,
    /// The file that contains the password in one line.
    pub file: String,
}

/// The error for a text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidWifiCredentials;

impl FromStr for WifiCredentials {
    type Err = InvalidWifiCredentials;

    /// Parses `NAME: /FILE`. The last `: ` separates them, because a name may contain colons.
    fn from_str(text: &str) -> Result<Self, InvalidWifiCredentials> {
        let (ssid, file) = text.rsplit_once(": ").ok_or(InvalidWifiCredentials)?;
        // The entry is in quotes in the owner's file.
        let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        let named = (1..=SSID_BYTES).contains(&ssid.len());
        if text.len() > MAX_BYTES || !named || !text.chars().all(plain) {
            return Err(InvalidWifiCredentials);
        }
        let file = normalize_path(file.trim()).ok_or(InvalidWifiCredentials)?;
        let ssid = ssid.to_owned();
        Ok(Self { ssid, file })
    }
}

impl fmt::Display for WifiCredentials {
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
            let network: WifiCredentials = good.parse().unwrap();
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
            assert_eq!(
                bad.parse::<WifiCredentials>(),
                Err(InvalidWifiCredentials),
                "{bad:?}"
            );
        }
    }
}
