//! The server's instructions for a model: which host this is, what the agent may do, and how to work with it.

use super::mentions::rename_words;
use super::tool_list::unlisted_tools;
use gatewren_base::sys::host_name;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::introduce;
use gatewren_wire::registry::{Catalog, Dialect};

/// Returns the instructions for an agent; `None` if the server has none.
pub fn instructions(catalog: &Catalog, who: &Principal) -> Option<String> {
    let common = catalog.instructions.as_ref()?;
    let mut common = unlisted_tools(catalog, who).removed_from_items(common);
    if catalog.dialect == Dialect::StartOs {
        let alias = |word: &str| Some(catalog.tool(word)?.aliases().first()?.name);
        common = rename_words(&common, alias);
        common = common.replace("gatewren:///public", "startos:///public");
    }
    // The name of the host would make a demo look like that host.
    let name = host_name().filter(|_| !catalog.is_demo);
    Some(format!("{}\n\n{common}", introduce(who, name.as_deref())))
}
