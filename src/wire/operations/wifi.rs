//! Wireless networks: operations and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass::{HostReads, Network};
use gatewren_base::sys::is_hostile;

use super::operation_facts::{OperationFacts, changes, reads};
use super::text_type::text_type;

/// The maximum length of a network's name (IEEE 802.11, 9.4.2.2).
const SSID_BYTES: usize = 32;

/// An operation on wireless networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum WifiAction {
    /// Print the state of the radio and the joined network, as JSON ([`WifiStatus`]).
    Status {},
    /// Scan for networks, and print those in range, as a JSON list ([`WifiNetwork`]).
    Scan {},
    /// Join a network; if that fails, return to the previous one.
    Connect {
        /// The network.
        ssid: Ssid,
    },
    /// Delete a saved network.
    Forget {
        /// The network.
        ssid: Ssid,
    },
    /// Switch the radio on or off.
    Enable {
        /// Whether the radio is switched on.
        enabled: bool,
    },
    /// Set the regulatory country.
    Country {
        /// The country.
        country: CountryCode,
    },
}

impl WifiAction {
    /// The facts of the operation: its row in the table.
    pub fn facts(&self) -> OperationFacts<'_> {
        match self {
            Self::Status {} => reads("wifi_status", HostReads),
            Self::Scan {} => reads("wifi_scan", HostReads),
            Self::Connect { .. } => changes("wifi_connect", Network),
            Self::Forget { .. } => changes("wifi_forget", Network),
            Self::Enable { .. } => changes("wifi_enable", Network),
            Self::Country { .. } => changes("wifi_country", Network),
        }
    }
}

text_type!(
    /// The name of a network: 1 to 32 bytes of text without terminal control sequences. Networks with other names are
    /// listed by their bytes, but cannot be joined.
    Ssid,
    { "minLength": 1, "maxLength": SSID_BYTES },
    |name| {
        let odd = |c: char| is_hostile(c) || c == '\n' || c == '\t';
        (1..=SSID_BYTES).contains(&name.len()) && !name.contains(odd)
    },
    "the name of a wireless network is 1 to 32 bytes, without control characters"
);

text_type!(
    /// A country code of ISO 3166, such as `AT`.
    CountryCode,
    { "pattern": "^[A-Z]{2}$" },
    |code| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase()),
    "a country is two uppercase letters, such as AT"
);

/// The state of the radio and its interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WifiStatus {
    /// Whether the radio is switched on.
    pub enabled: bool,
    /// Whether a hardware switch keeps it off.
    pub blocked: bool,
    /// The regulatory country, `00` if none is set; absent if iw is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The wireless interfaces, sorted.
    pub interfaces: Vec<WifiInterface>,
    /// The saved networks, sorted.
    pub saved: Vec<String>,
    /// The networks with a password in `helper.toml`.
    pub with_password: Vec<String>,
}

/// A wireless interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WifiInterface {
    /// Its name.
    pub interface: String,
    /// The state that `NetworkManager` reports, such as `connected`, `disconnected` or `unavailable`.
    pub state: String,
    /// The network that it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<WifiNetwork>,
}

/// A network in range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WifiNetwork {
    /// Its name, if it is text.
    pub ssid: String,
    /// The bytes of a name that is not plain text; such a network cannot be joined here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssid_hex: Option<String>,
    /// The signal strength of its strongest access point, 0 to 100.
    pub signal_percent: u8,
    /// The frequency of that access point.
    pub frequency_mhz: u32,
    /// Its encryption, such as `WPA2`; empty for an open network.
    pub security: String,
    /// The number of its access points in range.
    pub access_points: u32,
    /// Whether the host has joined it.
    pub joined: bool,
    /// Whether it is saved.
    pub saved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text_that_no_terminal_obeys() {
        let long = "a".repeat(32);
        for good in [
            "Home",
            "--help",
            "a:b\\c",
            "Caf\u{e9}",
            " x ",
            "$(id)",
            &long,
        ] {
            assert!(Ssid::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a\0b",
            "a\nb",
            "a\tb",
            "\u{1b}[2J",
            "\u{202e}x",
            &format!("{long}a"),
        ] {
            assert!(Ssid::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        for bad in ["", "at", "A", "AUT", "00", "A\n"] {
            assert!(CountryCode::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        assert!(CountryCode::try_from("AT".to_owned()).is_ok());
    }
}
