//! Names at the start the agents that may do more than reversible changes without approval.

use gatewren_base::config::Spaces;
use gatewren_gate::owner_actions::UnguardedAgents;
use gatewren_store::vault::Vault;

/// Logs one line for all of them. It is no warning: such a policy is a choice of the owner.
pub fn log_unguarded_agents(vault: &Vault, spaces: &Spaces) {
    match UnguardedAgents::find(vault, spaces) {
        Ok(Some(found)) => tracing::info!(remedy = found.remedy, "{}", found.seen),
        Ok(None) => {}
        Err(cause) => tracing::warn!(%cause, "cannot check the policies of the agents"),
    }
}
