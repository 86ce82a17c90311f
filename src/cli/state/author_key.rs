//! The key that proves who wrote a revision, read from the vault beside the state.

use std::path::Path;

use gatewren_store::vault::{AuditReader, SecretKey};

/// Returns the key; `None` if this user may not read the vault, or the server has not created the key yet.
pub fn author_key(state: &Path) -> Option<SecretKey> {
    let vault = AuditReader::open(&state.with_file_name("vault.db")).ok()?;
    vault.state_author_key().ok().flatten()
}
