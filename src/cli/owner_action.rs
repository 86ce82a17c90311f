//! The owner on the command line: a user who may open the vault is the owner, named after the user behind `sudo`.

use gatewren_base::sys::{own_uid, was_started_by_root};
use gatewren_gate::owner_actions::OwnerContext;
use gatewren_store::vault::Vault;

/// The owner, who runs a command that changes this vault.
pub fn owner_context(vault: &Vault) -> OwnerContext<'_> {
    OwnerContext {
        vault,
        by: owner(),
        from: "local".to_owned(),
    }
}

/// The owner's name for the audit. Root is named by how the process began: it acts as the server's user now, and
/// `USER` may be unset, as in a unit, or name the user before `su`.
pub fn owner() -> String {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| {
        if was_started_by_root() {
            Some("root".to_owned())
        } else {
            name("USER")
        }
    });
    let user = user.unwrap_or_else(|| format!("uid {}", own_uid()));
    format!("local:{user}")
}
