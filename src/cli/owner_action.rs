//! The owner on the command line: a user who may open the vault is the owner, named after the user behind `sudo`.

use gatewren_base::sys::own_uid;
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

/// The owner's name for the audit.
pub fn owner() -> String {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER"));
    let user = user.unwrap_or_else(|| format!("uid {}", own_uid()));
    format!("local:{user}")
}
