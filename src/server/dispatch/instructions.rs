//! The server's instructions for a model: which host this is, what the agent may do, and how to work with it.

use gatewren_base::sys::host_name;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::introduce;
use gatewren_wire::registry::Catalog;

/// Returns the instructions for an agent; `None` if the server has none.
pub fn instructions(catalog: &Catalog, who: &Principal) -> Option<String> {
    let common = catalog.instructions.as_ref()?;
    Some(format!(
        "{}\n\n{common}",
        introduce(who, host_name().as_deref())
    ))
}
