//! The shared state of the storage queries.

use crate::helper_client::Helper;

use super::super::source::Tree;

/// The host's storage, through the helper.
#[derive(Debug, Clone)]
pub struct Storage {
    pub(super) helper: Helper,
    pub(super) tree: Tree,
}

impl Storage {
    /// Returns access through this helper.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            tree: Tree::of_this_machine(),
        }
    }
}
