//! `WireGuard`'s tunnels.

use std::path::Path;
use std::time::Duration;

use crate::helper_client::{Operation, Tunnel, TunnelName};

use super::super::ask::{ask, ask_json};
use super::super::error::BackendError;
use super::reach::Network;

/// How long wg-quick may take: it looks up names.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the program is.
const PLACES: [&str; 2] = ["/usr/bin/wg-quick", "/usr/local/bin/wg-quick"];

impl Network {
    /// Whether this box has tunnels.
    pub fn has_tunnels() -> bool {
        PLACES.iter().any(|place| Path::new(place).exists())
    }

    /// Those that have a profile, and those that are up.
    ///
    /// # Errors
    /// When the owner's file does not let them be looked at.
    pub async fn tunnels(&self, reference: &str) -> Result<Vec<Tunnel>, BackendError> {
        let operation = Operation::HostTunnels {};
        ask_json(&self.helper, operation, PATIENCE, reference).await
    }

    /// Brings one up, or takes it down.
    ///
    /// # Errors
    /// When there is no such profile, and what wg-quick says last. What it says before may be the owner's own commands.
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
