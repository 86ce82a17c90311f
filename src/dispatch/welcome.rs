//! The server's instructions for a model: which host this is, what the agent may do, and how to work with it.

use crate::auth::Principal;
use crate::policy::introduce;
use crate::registry::Catalog;
use crate::sys::host_name;

/// Returns the instructions for an agent; `None` if the server has none.
pub fn instructions(catalog: &Catalog, who: &Principal) -> Option<String> {
    let common = catalog.instructions.as_ref()?;
    Some(format!(
        "{}\n\n{common}",
        introduce(who, host_name().as_deref())
    ))
}
