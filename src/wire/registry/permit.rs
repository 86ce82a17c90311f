//! The permit that is required to run a tool.

/// Proof that the policy has allowed one call; [`crate::registry::Tool::run`] takes it.
///
/// Only the module `policy` creates permits; the test `house_rules` checks this.
#[derive(Debug)]
#[must_use]
pub struct Permit(());

impl Permit {
    /// Called by the policy when its verdict is to allow.
    pub fn granted_by_policy() -> Self {
        Self(())
    }
}
