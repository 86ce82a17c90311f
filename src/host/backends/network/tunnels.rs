//! `WireGuard`'s tunnels.

use std::path::Path;
use std::time::Duration;

use crate::helper_client::{Operation, Tunnel, TunnelName};

use super::super::error::BackendError;
use super::super::request::{ask, ask_json};
use super::reach::Network;

/// The timeout for wg-quick, which may look up names.
const PATIENCE: Duration = Duration::from_mins(1);

/// The possible paths of the program.
const PLACES: [&str; 2] = ["/usr/bin/wg-quick", "/usr/local/bin/wg-quick"];

impl Network {
    /// Whether the host can have tunnels.
    pub fn has_tunnels() -> bool {
        PLACES.iter().any(|place| Path::new(place).exists())
    }

    /// Returns the tunnels that have a profile or are up.
    ///
    /// # Errors
    /// When the owner's file does not allow it.
    pub async fn tunnels(&self, reference: &str) -> Result<Vec<Tunnel>, BackendError> {
        let operation = Operation::HostTunnels {};
        ask_json(&self.helper, operation, PATIENCE, reference).await
    }

    /// Brings a tunnel up or down.
    ///
    /// # Errors
    /// When the profile does not exist, and wg-quick's last line. Earlier lines may contain the
    /// owner's own commands.
    pub async fn switch_tunnel(
        &self,
        tunnel: TunnelName,
        up: bool,
        reference: &str,
    ) -> Result<(), BackendError> {
        let operation = if up {
            Operation::HostTunnelUp { tunnel }
        } else {
            Operation::HostTunnelDown { tunnel }
        };
        let done = ask(&self.helper, operation, PATIENCE, reference).await;
        done.map(drop).map_err(|error| BackendError {
            message: error.message.lines().last().unwrap_or_default().to_owned(),
            ..error
        })
    }
}
