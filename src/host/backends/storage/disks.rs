//! The shared state of the storage queries.

use crate::helper_client::HelperClient;

use super::super::source::HostTree;

/// The host's storage, through the helper.
#[derive(Debug, Clone)]
pub struct Storage {
    pub(super) helper: HelperClient,
    pub(super) tree: HostTree,
}

impl Storage {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self {
            helper,
            tree: HostTree::of_this_machine(),
        }
    }
}
