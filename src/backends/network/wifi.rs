//! Wireless networks.

use std::time::Duration;

use crate::helper_client::{Operation, Ssid, WifiDeed, WifiNetwork, WifiStatus};

use super::super::ask::{ask, ask_json};
use super::super::error::BackendError;
use super::super::source::Tree;
use super::reach::Network;

/// How long a change may take: a network is joined, does not let the host in, and the former one is joined again.
const PATIENCE: Duration = Duration::from_secs(150);

/// How long a look may take: the radio listens on every channel.
const LOOK: Duration = Duration::from_mins(1);

/// Where the kernel shows the interfaces.
const INTERFACES: &str = "sys/class/net";

/// Where the programs are.
const PLACES: [&str; 4] = ["usr/bin", "usr/local/bin", "usr/sbin", "sbin"];

impl Network {
    /// Whether this box has a radio, and the program that knows how to use it.
    pub fn has_wifi() -> bool {
        let tree = Tree::of_this_machine();
        has_radio(&tree) && has_program(&tree, "nmcli")
    }

    /// Whether the radio can be told in which country it is.
    pub fn has_country() -> bool {
        let tree = Tree::of_this_machine();
        has_radio(&tree) && has_program(&tree, "nmcli") && has_program(&tree, "iw")
    }

    /// How the radio is, and where it is joined.
    ///
    /// # Errors
    /// When the owner's file does not let it be looked at, and when `NetworkManager` does not run.
    pub async fn wifi(&self, reference: &str) -> Result<WifiStatus, BackendError> {
        let deed = WifiDeed::Status {};
        ask_json(&self.helper, Operation::Wifi { deed }, LOOK, reference).await
    }

    /// The networks that are heard, the strongest first.
    ///
    /// # Errors
    /// As for [`Self::wifi`].
    pub async fn wifi_scan(&self, reference: &str) -> Result<Vec<WifiNetwork>, BackendError> {
        let deed = WifiDeed::Scan {};
        ask_json(&self.helper, Operation::Wifi { deed }, LOOK, reference).await
    }

    /// Changes something, and tells how the radio is then.
    ///
    /// # Errors
    /// When the owner's file does not let it be changed, and what `NetworkManager` says.
    pub async fn wifi_change(
        &self,
        deed: WifiDeed,
        reference: &str,
    ) -> Result<WifiStatus, BackendError> {
        ask(&self.helper, Operation::Wifi { deed }, PATIENCE, reference).await?;
        self.wifi(reference).await
    }

    /// Those that the owner's file lets be joined and those that are saved, of one name.
    ///
    /// # Errors
    /// As for [`Self::wifi`].
    pub async fn wifi_of(
        &self,
        ssid: Option<&Ssid>,
        reference: &str,
    ) -> Result<WifiStatus, BackendError> {
        let mut status = self.wifi(reference).await?;
        if let Some(ssid) = ssid {
            let is_it = |name: &String| name == ssid.as_str();
            status.saved.retain(is_it);
            status.with_password.retain(is_it);
        }
        Ok(status)
    }
}

fn has_radio(tree: &Tree) -> bool {
    tree.names(INTERFACES).iter().any(|name| {
        let has = |part: &str| tree.has(&format!("{INTERFACES}/{name}/{part}"));
        has("wireless") || has("phy80211")
    })
}

fn has_program(tree: &Tree, name: &str) -> bool {
    let mut places = PLACES.iter();
    places.any(|place| tree.has(&format!("{place}/{name}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::Scratch;

    // A tree in the layout of sysfs (the kernel's Documentation/ABI/testing/sysfs-class-net): the machines of the tests
    // have no radio.
    #[test]
    fn a_radio_is_an_interface_of_its_kind() {
        let scratch = Scratch::new();
        let tree = Tree::below(scratch.path());
        fs::create_dir_all(scratch.join(INTERFACES).join("eth0/device")).unwrap();
        assert!(!has_radio(&tree) && !has_program(&tree, "nmcli"));
        fs::create_dir_all(scratch.join(INTERFACES).join("wlan0/phy80211")).unwrap();
        fs::create_dir_all(scratch.join("usr/bin")).unwrap();
        fs::write(scratch.join("usr/bin/nmcli"), "").unwrap();
        assert!(has_radio(&tree) && has_program(&tree, "nmcli") && !has_program(&tree, "iw"));
    }
}
