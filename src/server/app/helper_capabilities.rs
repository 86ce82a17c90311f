//! Announces changes of `helper.toml`'s switches while the server runs: to clients, and to the owner's commands.

use std::sync::Arc;

use crate::dispatch::Engine;
use gatewren_host::backends::HelperCapabilities;
use gatewren_store::vault::{OfferedTool, Vault};
use gatewren_wire::registry::{Catalog, Scope, Tool};

/// Announces every change, while it runs.
pub async fn announce(engine: Arc<Engine>, vault: Vault, bounds: HelperCapabilities) {
    let mut changes = bounds.changes();
    loop {
        let off = changes.next().await;
        let keys: Vec<&str> = off.iter().map(|class| class.key()).collect();
        tracing::info!(
            off = keys.join(" "),
            "the operations that the helper allows have changed"
        );
        engine.catalog.announce_tools_changed();
        if let Err(cause) = vault.offer().keep(&offered_tools(&engine.catalog)).await {
            tracing::warn!(%cause, "cannot store the list of offered tools");
        }
    }
}

/// The properties of each tool that a policy checks, and the reason if the tool is off.
pub fn offered_tools(catalog: &Catalog) -> Vec<OfferedTool> {
    let offered = |tool: &Arc<Tool>| OfferedTool {
        name: tool.name().to_owned(),
        toolset: tool.toolset().to_owned(),
        risk: tool.risk(),
        needs_host: tool.scope() == Scope::Host,
        needs_everything: tool.scope() == Scope::Server,
        off: tool.needs().filter(|_| !catalog.has(tool)),
    };
    catalog.tools().map(offered).collect()
}
