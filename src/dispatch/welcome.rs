//! What a model is told first: whose box this is, what it may do there, and how to work with it.

use crate::auth::Principal;
use crate::policy::introduce;
use crate::registry::Catalog;
use crate::sys::host_name;

/// The instructions for one agent; nothing where the server has none.
pub fn instructions(catalog: &Catalog, who: &Principal) -> Option<String> {
    let common = catalog.instructions.as_ref()?;
    Some(format!(
        "{}\n\n{common}",
        introduce(who, host_name().as_deref())
    ))
}
