//! The key that proves who wrote a revision, from the vault beside the state.

use std::path::Path;

use crate::vault::AuditReader;

/// The key; none for who may not read the vault, and before a server has made it.
pub fn author_key(state: &Path) -> Option<[u8; 32]> {
    let vault = AuditReader::open(&state.with_file_name("vault.db")).ok()?;
    vault.state_author_key().ok().flatten()
}
