//! What the helper's owner switches on or off while the server runs: clients, and the owner's commands, are told.

use std::sync::Arc;

use crate::backends::Bounds;
use crate::dispatch::Engine;
use crate::registry::{Catalog, Scope, Tool};
use crate::vault::{OfferedTool, Vault};

/// Tells of every change, for as long as it runs.
pub async fn announce(engine: Arc<Engine>, vault: Vault, bounds: Bounds) {
    let mut changes = bounds.changes();
    loop {
        let off = changes.next().await;
        let keys: Vec<&str> = off.iter().map(|class| class.key()).collect();
        tracing::info!(
            off = keys.join(" "),
            "what the helper does on this box has changed"
        );
        engine.catalog.tell_tools_changed();
        if let Err(cause) = vault.offer().keep(&offered(&engine.catalog)).await {
            tracing::warn!(%cause, "what is offered could not be written down");
        }
    }
}

/// What a policy looks at in each tool, and why it is not there if it is not.
pub fn offered(catalog: &Catalog) -> Vec<OfferedTool> {
    let offered = |tool: &Arc<Tool>| OfferedTool {
        name: tool.name().to_owned(),
        toolset: tool.toolset().to_owned(),
        risk: tool.risk(),
        needs_host: tool.scope() == Scope::Host,
        needs_everything: tool.scope() == Scope::Box,
        off: tool.needs().filter(|_| !catalog.has(tool)),
    };
    catalog.tools().map(offered).collect()
}
