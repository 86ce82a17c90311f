//! The list of all clients.

use super::profile::ClientProfile;
use super::{chat_apps, editors, programs, terminal};

/// The groups of clients, in the order of the list.
const GROUPS: [&[ClientProfile]; 4] = [
    &terminal::CLIENTS,
    &editors::CLIENTS,
    &chat_apps::CLIENTS,
    &programs::CLIENTS,
];

/// Returns all clients.
pub(in super::super) fn all_clients() -> impl Iterator<Item = &'static ClientProfile> {
    GROUPS.into_iter().flatten()
}
