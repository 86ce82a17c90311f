//! What the questions about storage stand on.

use crate::helper_client::Helper;

/// The host's storage through the helper.
#[derive(Debug, Clone)]
pub struct Storage {
    pub(super) helper: Helper,
}

impl Storage {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }
}
