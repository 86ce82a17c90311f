//! Wireless networks.

use std::time::Duration;

use crate::helper_client::{Operation, Ssid, WifiAction, WifiNetwork, WifiStatus};

use super::super::error::BackendError;
use super::super::request::{ask, ask_json};
use super::super::source::HostTree;
use super::reach::Network;

/// The timeout of a change: a network is joined, rejects the host, and the former one is joined
/// again.
const PATIENCE: Duration = Duration::from_secs(150);

/// The timeout of a scan: the radio listens on every channel.
const LOOK: Duration = Duration::from_mins(1);

/// The kernel's directory of interfaces.
const INTERFACES: &str = "sys/class/net";

/// The directories of the programs.
const PLACES: [&str; 4] = ["usr/bin", "usr/local/bin", "usr/sbin", "sbin"];

impl Network {
    /// Whether the host has a radio and the program to manage it.
    pub fn has_wifi() -> bool {
        let tree = HostTree::of_this_machine();
        has_radio(&tree) && has_program(&tree, "nmcli")
    }

    /// Whether the radio's country can be set.
    pub fn has_country() -> bool {
        let tree = HostTree::of_this_machine();
        has_radio(&tree) && has_program(&tree, "nmcli") && has_program(&tree, "iw")
    }

    /// Returns the radio's state and connection.
    ///
    /// # Errors
    /// When the owner's file does not allow it, and when `NetworkManager` is not running.
    pub async fn wifi(&self, reference: &str) -> Result<WifiStatus, BackendError> {
        let action = WifiAction::Status {};
        ask_json(&self.helper, Operation::Wifi { action }, LOOK, reference).await
    }

    /// Returns the networks in range, strongest first.
    ///
    /// # Errors
    /// As for [`Self::wifi`].
    pub async fn wifi_scan(&self, reference: &str) -> Result<Vec<WifiNetwork>, BackendError> {
        let action = WifiAction::Scan {};
        ask_json(&self.helper, Operation::Wifi { action }, LOOK, reference).await
    }

    /// Makes a change and returns the new state.
    ///
    /// # Errors
    /// When the owner's file does not allow it, and `NetworkManager`'s errors.
    pub async fn wifi_change(
        &self,
        action: WifiAction,
        reference: &str,
    ) -> Result<WifiStatus, BackendError> {
        ask(
            &self.helper,
            Operation::Wifi { action },
            PATIENCE,
            reference,
        )
        .await?;
        self.wifi(reference).await
    }

    /// Returns the status, with the allowed and saved networks limited to one name if it is set.
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

fn has_radio(tree: &HostTree) -> bool {
    tree.names(INTERFACES).iter().any(|name| {
        let has = |part: &str| tree.has(&format!("{INTERFACES}/{name}/{part}"));
        has("wireless") || has("phy80211")
    })
}

fn has_program(tree: &HostTree, name: &str) -> bool {
    let mut places = PLACES.iter();
    places.any(|place| tree.has(&format!("{place}/{name}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gatewren_base::sys::Scratch;

    // A tree in the layout of sysfs (the kernel's Documentation/ABI/testing/sysfs-class-net): test
    // machines have no radio.
    #[test]
    fn a_radio_is_an_interface_of_its_kind() {
        let scratch = Scratch::new();
        let tree = HostTree::below(scratch.path());
        fs::create_dir_all(scratch.join(INTERFACES).join("eth0/device")).unwrap();
        assert!(!has_radio(&tree) && !has_program(&tree, "nmcli"));
        fs::create_dir_all(scratch.join(INTERFACES).join("wlan0/phy80211")).unwrap();
        fs::create_dir_all(scratch.join("usr/bin")).unwrap();
        fs::write(scratch.join("usr/bin/nmcli"), "").unwrap();
        assert!(has_radio(&tree) && has_program(&tree, "nmcli") && !has_program(&tree, "iw"));
    }
}
