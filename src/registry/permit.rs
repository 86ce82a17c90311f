//! The key without which no tool runs.

/// Proof that the policy has allowed one call; [`crate::registry::Tool::run`] takes it.
///
/// Only the room `policy` makes one: the house rules test looks for any other.
#[derive(Debug)]
#[must_use]
pub struct Permit(());

impl Permit {
    /// Made by the policy when its verdict is to allow.
    pub fn granted_by_policy() -> Self {
        Self(())
    }
}
